"""Apply delivery receipts of an SMS provider, which may arrive before our own commit, twice, and in any order.

A text that was sent again has several messages at the provider. Only a receipt of the latest attempt counts. A receipt
of an earlier attempt could end a text that is being sent, or mark a sent text as failed, so that the text would not
count against the frequency cap.
"""

from collections.abc import Mapping
from uuid import UUID

from regulars.consent.chain import hash_number
from regulars.consent.inbound import Reply, record_inbound_stop
from regulars.consent.numbers import lock_consents
from regulars.kit.db import Tx
from regulars.texts import text_rows as texts
from regulars.texts.find import find_text
from regulars.texts.model import SkipReason, TextRow, TextState, moves_forward
from regulars.texts.outcomes import end_texts
from regulars.texts.queries import claims
from regulars.texts.settings.store import Texting


async def apply_receipt(
    tx: Tx,
    organization_id: UUID,
    text_id: UUID,
    state: TextState,
    *,
    provider_id: str | None,
    attempt: str | None,
    code: str | None,
    is_stop: bool,
    texting: Texting,
) -> bool:
    """Change the state of the text; False if there is no such text, if it has a later state already, or if the receipt
    is for another attempt.

    With `is_stop` the provider reports that the person opted out, and consent is withdrawn. Callback URLs of earlier
    releases have no `attempt`, which means 1.
    """
    text = await find_text(tx, organization_id, text_id)
    if text is None or text.phone_number is None:
        return False
    # The number is locked before the text, in the lock order of all transactions.
    await lock_consents(tx, organization_id, [hash_number(texting.secret, text.phone_number)])
    row = await texts.lock_text(tx, organization_id, text_id)
    if (
        row is None
        or not _is_latest(row, provider_id, attempt or "1")
        or not moves_forward(TextState(row.state), state)
    ):
        return False
    if is_stop:
        reply = Reply(phone_number=text.phone_number, text="", message_id=f"text:{text_id}")
        await record_inbound_stop(tx, organization_id, [reply], secret=texting.secret)
    reason = _describe_failure(code) if state is TextState.FAILED and code else None
    ended = claims.EndedText(text_id, state.value, reason, provider_id)
    await end_texts(tx, organization_id, [ended], previous_state=row.state)
    return True


async def end_sent_texts(tx: Tx, organization_id: UUID, codes: Mapping[UUID, str | None]) -> None:
    """Store the receipts of texts that the caller sent in this transaction: a text with an error code failed, one
    without was delivered."""
    ended = [
        claims.EndedText(text_id, TextState.DELIVERED.value, None)
        if code is None
        else claims.EndedText(text_id, TextState.FAILED.value, _describe_failure(code))
        for text_id, code in codes.items()
    ]
    await end_texts(tx, organization_id, ended, previous_state=TextState.SENT.value)


def _describe_failure(code: str) -> str:
    return f"{SkipReason.UNDELIVERED.value} {code}"


def _is_latest(row: TextRow, provider_id: str | None, attempt: str) -> bool:
    """Whether the receipt is for the current attempt; a queued text has no current attempt."""
    if row.state == TextState.QUEUED or attempt != str(row.attempts):
        return False
    return row.provider_id is None or provider_id is None or row.provider_id == provider_id
