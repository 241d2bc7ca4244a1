"""Updates the outcomes of recipients from the states of their texts, and the totals from the outcomes.

A recorded change of a text (a fact) only says which recipient to update. The outcome is read from the text itself,
while the recipient is locked. So facts may arrive late or in any order, and a text that was sent again is counted once.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final
from uuid import UUID

from regulars.campaigns.model import CampaignState, RecipientOutcome
from regulars.campaigns.run import queries, recipient_queries
from regulars.campaigns.run.recipient_queries import Recipient
from regulars.campaigns.totals import Differences, TotalKey
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.texts.facts import MessagesChanged
from regulars.texts.find import find_texts_of_steps
from regulars.texts.model import SkipReason, TextRow, TextState
from regulars.texts.number_location import locate_number

# How many texts of a campaign are queued at the same time.
QUEUED_MAX: Final = 512
# When fewer texts than this are queued, the worker queues more, so that the queue does not become empty.
_FEW_QUEUED: Final = QUEUED_MAX // 2
_REASON_CODE: Final = re.compile("[a-z_]+")
_KNOWN_REASONS: Final = frozenset(reason.value for reason in SkipReason)
_UNSENT_STATES: Final = frozenset({TextState.QUEUED.value, TextState.SENDING.value})
_WITH_REASON: Final = frozenset({RecipientOutcome.FAILED.value, RecipientOutcome.SKIPPED.value})


async def handle_messages(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    """Update the outcomes of campaign texts, and wake campaigns that have few texts queued."""
    recipient_keys = {
        (fact.origin_id, fact.profile_id)
        for fact in facts
        if fact.origin_kind == OriginKind.CAMPAIGN and fact.origin_id is not None and fact.profile_id is not None
    }
    if not recipient_keys:
        return
    await update_outcomes(tx, organization_id, recipient_keys)
    ids = {campaign_id for campaign_id, _ in recipient_keys}
    if await queries.wake_unlimited(tx, organization_id, ids, queued_max=_FEW_QUEUED):
        tx.queues_to_wake.add(("campaigns", organization_id))


async def update_outcomes(tx: Tx, organization_id: UUID, recipient_keys: Collection[tuple[UUID, UUID]]) -> None:
    """Update recipients to the current outcome of their texts; a key has the ids of the campaign and of the profile."""
    states = await queries.lock_campaigns(tx, organization_id, {campaign_id for campaign_id, _ in recipient_keys})
    recipients = await recipient_queries.lock_recipients(tx, organization_id, recipient_keys)
    steps = [(it.campaign_id, str(it.profile_id)) for it in recipients]
    texts = await find_texts_of_steps(tx, organization_id, OriginKind.CAMPAIGN, steps)
    changed = [
        (
            it,
            _with_outcome_of(
                it, texts.get((it.campaign_id, str(it.profile_id))), CampaignState(states[it.campaign_id])
            ),
        )
        for it in recipients
    ]
    await save_outcomes(tx, organization_id, changed)


def _with_outcome_of(recipient: Recipient, text: TextRow | None, state: CampaignState) -> Recipient:
    """The recipient with the outcome of the text. If the text is missing, a pause removed it from the queue."""
    if text is None:
        return return_to_waiting(recipient, state) if recipient.outcome == RecipientOutcome.QUEUED else recipient
    outcome = RecipientOutcome.QUEUED.value if text.state in _UNSENT_STATES else text.state
    country = None if text.phone_number is None else locate_number(text.phone_number).country
    return recipient._replace(
        outcome=outcome,
        reason=_reason_code(text.reason) if outcome in _WITH_REASON else "",
        country=country or "",
        parts=text.parts,
    )


def return_to_waiting(recipient: Recipient, state: CampaignState) -> Recipient:
    """The recipient as waiting again, or with the final outcome if the campaign has ended meanwhile."""
    outcome, reason = closing_outcome(state)
    return recipient._replace(outcome=outcome, reason=reason, country="", parts=0, fed_at=None)


def closing_outcome(state: CampaignState) -> tuple[str, str]:
    """The outcome and reason of a recipient whose text was not queued when the campaign came to this state."""
    match state:
        case CampaignState.CANCELLED:
            return RecipientOutcome.SKIPPED.value, SkipReason.CANCELLED.value
        case CampaignState.ENDED:
            return RecipientOutcome.EXPIRED.value, ""
        case _:
            return RecipientOutcome.WAITING.value, ""


async def save_outcomes(tx: Tx, organization_id: UUID, changed: Iterable[tuple[Recipient, Recipient]]) -> None:
    """Save changed recipients, each given before and after the change, and update the totals by the difference. The
    caller has locked the recipients."""
    different = [(before, after) for before, after in changed if before != after]
    if not different:
        return
    await recipient_queries.save_recipients(tx, organization_id, [after for _, after in different])
    differences = Differences()
    for before, after in different:
        differences.move(_key(before), _key(after), parts_before=before.parts, parts_after=after.parts)
    await differences.write(tx, organization_id)


def _key(recipient: Recipient) -> TotalKey:
    return TotalKey(recipient.campaign_id, recipient.arm, recipient.outcome, recipient.reason, recipient.country)


def _reason_code(reason: str | None) -> str:
    """The code at the start of a reason, if it is a `SkipReason`. A provider's message may contain the phone number."""
    code = _REASON_CODE.match(reason or "")
    return code[0] if code is not None and code[0] in _KNOWN_REASONS else ""
