"""The life of an organization's columns: they begin with its first segment and end with its last.

A build is a new epoch, so whatever an earlier one left behind is simply not looked at, and is swept in bites.
"""

from typing import Final, Literal
from uuid import UUID

from regulars.consent.facts import SubscriptionsChanged
from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.profiles.facts import ProfilesChanged
from regulars.segments import queries
from regulars.segments.columns.model import FORMAT, Progress, State
from regulars.work.outbox import register_interest, withdraw_interest

NEEDED_BY: Final = "segments.columns"
BUILD_QUEUE: Final = "segments.build"
WANTED: Final = (ProfilesChanged, SubscriptionsChanged, MessagesChanged)
_BEFORE_ALL: Final = UUID(int=0)


async def settle(tx: Tx, organization_id: UUID, *, is_needed: bool) -> None:
    """Called where a segment comes or goes, in its transaction: whether the organization has any now."""
    if is_needed:
        await _begin(tx, organization_id)
    else:
        await _end(tx, organization_id)


async def rebuild(tx: Tx, organization_id: UUID) -> bool:
    """Begin anew, whatever the columns hold; False if the organization has none."""
    await queries.wait_longer(tx)
    state = await queries.lock_state(tx, organization_id)
    if state is None or state.state == "ended":
        return False
    await begin_epoch(tx, organization_id, state)
    return True


async def find_progress(tx: Tx, organization_id: UUID) -> Progress | None:
    state = await queries.find_state(tx, organization_id)
    return None if state is None else progress_of(state)


def progress_of(state: State) -> Progress | None:
    if state.state == "ended":
        return None
    shown: Literal["building", "ready"] = "ready" if state.state == "ready" else "building"
    return Progress(shown, state.phase, state.done, max(state.total, state.done))


async def begin_epoch(tx: Tx, organization_id: UUID, state: State) -> None:
    """For whoever holds the state: what is there counts no longer, and is built again from the rows."""
    state.epoch += 1
    state.state, state.phase, state.format = "building", "waiting", FORMAT
    state.fence = state.fenced_at = None
    state.walked_to, state.done, state.total = _BEFORE_ALL, 0, 0
    state.next_number, state.next_run, state.folded_to = 0, 1, 0
    state.erased_since = state.tidy_at = None
    state.is_littered, state.build_at = True, tx.now
    await queries.update_state(tx, organization_id, state)
    tx.touched.add((BUILD_QUEUE, organization_id))


async def _begin(tx: Tx, organization_id: UUID) -> None:
    for fact in WANTED:
        await register_interest(tx, organization_id, fact, needed_by=NEEDED_BY)
    await queries.wait_longer(tx)
    # The row that an insert meets may be one that the last bite of a sweep deletes while we wait for it.
    while not await queries.insert_state_if_new(tx, organization_id, format_=FORMAT):
        state = await queries.lock_state(tx, organization_id)
        if state is not None:
            if state.state == "ended":
                await begin_epoch(tx, organization_id, state)
            return
    tx.touched.add((BUILD_QUEUE, organization_id))


async def _end(tx: Tx, organization_id: UUID) -> None:
    for fact in WANTED:
        await withdraw_interest(tx, organization_id, fact, needed_by=NEEDED_BY)
    await queries.wait_longer(tx)
    state = await queries.lock_state(tx, organization_id)
    if state is None or state.state == "ended":
        return
    state.state, state.is_littered, state.build_at, state.tidy_at = "ended", True, tx.now, None
    await queries.update_state(tx, organization_id, state)
    tx.touched.add((BUILD_QUEUE, organization_id))
