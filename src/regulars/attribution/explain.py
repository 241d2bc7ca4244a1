"""Explains which text a ticket (a sale) is credited to, or why to none.

A text that was sent or a click on its link is a touch; a sale is credited to the last touch, within a time window.
"""

import enum
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from regulars.attribution.credits import find_credits
from regulars.attribution.model import Credit, Touch, is_frozen
from regulars.attribution.queries import is_computation_due
from regulars.attribution.touches import load_touches
from regulars.attribution.windows import WindowsVersion, list_versions, windows_of_text
from regulars.kit.db import Tx

# No text was sent before this time. The date of a ticket may be wrong, such as the year 1, from which no earlier time
# can be computed.
_FIRST_TEXT_AT: Final = datetime(2000, 1, 1, tzinfo=UTC)


class NoCredit(enum.StrEnum):
    """Why a ticket has no credit."""

    RETURN = "return"
    NO_CUSTOMER = "no_customer"
    # No text reached the customer in the 90 days before the ticket.
    NO_TEXT = "no_text"
    # The ticket is after the window of the last touch.
    OUTSIDE_WINDOW = "outside_window"
    # The ticket arrived after the credits of its text became final.
    TOO_LATE = "too_late"
    # The credits of the customer have not been computed yet.
    WAITING = "waiting"


class CreditExplanation(NamedTuple):
    """The credit of a ticket; or why it has none, with the last touch before the ticket and the window of the touch."""

    credit: Credit | None = None
    reason: NoCredit | None = None
    touch: Touch | None = None
    window: timedelta | None = None


async def explain_sale(
    tx: Tx,
    organization_id: UUID,
    sale_id: UUID,
    *,
    is_return: bool,
    profile_id: UUID | None,
    occurred_at: datetime,
) -> CreditExplanation:
    """Find the credit of a ticket, or the reason why it has none."""
    credit = (await find_credits(tx, organization_id, [sale_id])).get(sale_id)
    if credit is not None:
        return CreditExplanation(credit)
    if is_return:
        return CreditExplanation(reason=NoCredit.RETURN)
    if profile_id is None:
        return CreditExplanation(reason=NoCredit.NO_CUSTOMER)
    if occurred_at < _FIRST_TEXT_AT:
        return CreditExplanation(reason=NoCredit.NO_TEXT)
    touches = await load_touches(tx, organization_id, {profile_id: occurred_at})
    earlier_touches = [touch for touch in touches.get(profile_id, ()) if touch.at < occurred_at]
    if not earlier_touches:
        return CreditExplanation(reason=NoCredit.NO_TEXT)
    versions = await list_versions(tx, organization_id)
    touch = min(earlier_touches, key=lambda touch: _excess(touch, occurred_at, versions))
    if _excess(touch, occurred_at, versions) > timedelta(0):
        reason = NoCredit.OUTSIDE_WINDOW
    elif not await is_computation_due(tx, organization_id, profile_id) and is_frozen(touch.sent_at, tx.now):
        reason = NoCredit.TOO_LATE
    else:
        reason = NoCredit.WAITING
    return CreditExplanation(reason=reason, touch=touch, window=_window_of(touch, versions))


def _excess(touch: Touch, occurred_at: datetime, versions: Sequence[WindowsVersion]) -> timedelta:
    """How long after the end of the touch's window the sale was; negative if it was inside the window."""
    return occurred_at - touch.at - _window_of(touch, versions)


def _window_of(touch: Touch, versions: Sequence[WindowsVersion]) -> timedelta:
    return windows_of_text(versions, touch.sent_at).of(touch.kind)
