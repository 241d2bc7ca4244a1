"""What a provider reports about a text later; it may come before our own commit, twice, and in any order.

A text that was sent again has several messages at the provider. A receipt counts for the latest attempt alone: one of
an earlier attempt would end a text that is on its way, or take one that was sent out of the cap.
"""

from uuid import UUID

from regulars.consent.chain import hash_number
from regulars.consent.inbound import Reply, record_inbound_stop
from regulars.consent.numbers.gate import lock_consents
from regulars.kit.db import Tx
from regulars.messaging import queries
from regulars.messaging.model import Reason, State, TextRow, moves_forward
from regulars.messaging.publish import note_changes
from regulars.messaging.settings.store import Texting


async def note_receipt(
    tx: Tx,
    organization_id: UUID,
    text_id: UUID,
    state: State,
    *,
    provider_id: str | None,
    attempt: str | None,
    code: str | None,
    is_stop: bool,
    texting: Texting,
) -> bool:
    """Move the text forward; False where it is unknown here, already further, or another attempt. Resolves `unknown`.

    Addresses of earlier releases name no `attempt`: they were the first.
    """
    seen = await queries.find_text(tx, organization_id, text_id)
    if seen is None or seen.phone_number is None:
        return False
    # The number before the text, as everybody locks.
    await lock_consents(tx, organization_id, [hash_number(texting.secret, seen.phone_number)])
    row = await queries.lock_text(tx, organization_id, text_id)
    if row is None or not _is_latest(row, provider_id, attempt or "1") or not moves_forward(State(row.state), state):
        return False
    if is_stop:
        reply = Reply(phone_number=seen.phone_number, text="", message_id=f"text:{text_id}")
        await record_inbound_stop(tx, organization_id, [reply], secret=texting.secret)
    reason = f"{Reason.REFUSED.value} {code}" if state is State.FAILED and code else None
    ended = queries.Ended(text_id, state.value, reason, provider_id)
    await note_changes(tx, organization_id, await queries.end_texts(tx, organization_id, [ended]))
    return True


def _is_latest(row: TextRow, provider_id: str | None, attempt: str) -> bool:
    """Whether the receipt is of the attempt that stands: what is queued has none, it waits for the next."""
    if row.state == State.QUEUED or attempt != str(row.attempts):
        return False
    return row.provider_id is None or provider_id is None or row.provider_id == provider_id
