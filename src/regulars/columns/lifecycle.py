"""Creates, rebuilds and deletes the columns of an organization, which are a columnar copy of its customers and sales.

The columns exist as long as the organization has segments or its users open the pages of Analyse.

Each build has a new number, the epoch. Rows of earlier epochs are ignored, and the build queue deletes them in batches.
"""

from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from regulars.columns import column_rows as queries
from regulars.columns.model import FORMAT, BuildProgress, State
from regulars.consent.facts import SubscriptionsChanged
from regulars.kit.db import Tx
from regulars.profiles.facts import ProfilesChanged
from regulars.texts.facts import MessagesChanged
from regulars.work.outbox import register_interest, withdraw_interest

NEEDED_BY: Final = "segments.columns"
BUILD_QUEUE: Final = "segments.build"
LISTENED_FACTS: Final = (ProfilesChanged, SubscriptionsChanged, MessagesChanged)
# Without segments, the columns are deleted this long after the pages of Analyse were last opened.
UNUSED_AFTER: Final = timedelta(days=30)
_USE_RECORDED_EVERY: Final = timedelta(days=1)
# Estimates assume that a build copies sales at this rate, until it has copied some: 10 million in about four minutes.
SALES_PER_SECOND_ASSUMED: Final = 40_000


async def begin(tx: Tx, organization_id: UUID) -> None:
    """Start a build if there are no columns; called in the transaction that creates a segment."""
    for fact in LISTENED_FACTS:
        await register_interest(tx, organization_id, fact, needed_by=NEEDED_BY)
    await tx.set_lock_timeout(queries.LOCK_TIMEOUT)
    # The last cleanup batch may delete the existing row while this transaction waits for its lock; then try again.
    while not await queries.insert_state_if_new(tx, organization_id, format_=FORMAT):
        state = await queries.lock_state(tx, organization_id)
        if state is not None:
            if state.state == "ended":
                await begin_epoch(tx, organization_id, state)
            return
    tx.queues_to_wake.add((BUILD_QUEUE, organization_id))


async def need_columns(tx: Tx, organization_id: UUID) -> None:
    """Start a build if there are no columns, and record that they are used; called when a user opens Analyse."""
    state = await queries.find_state(tx, organization_id)
    if state is None or state.state == "ended" or not _is_used(state, tx.now, within=_USE_RECORDED_EVERY):
        await begin(tx, organization_id)
        await queries.update_used_at(tx, organization_id)


def _is_used(state: State, now: datetime, *, within: timedelta) -> bool:
    return state.used_at is not None and state.used_at > now - within


async def end(tx: Tx, organization_id: UUID) -> None:
    """Delete the columns, unless Analyse was opened lately; called in the transaction that deletes the last segment."""
    current = await queries.find_state(tx, organization_id)
    if current is not None and _is_used(current, tx.now, within=UNUSED_AFTER):
        return
    for fact in LISTENED_FACTS:
        await withdraw_interest(tx, organization_id, fact, needed_by=NEEDED_BY)
    state = await queries.lock_state(tx, organization_id)
    if state is None or state.state == "ended":
        return
    state.state, state.is_littered, state.build_at, state.tidy_at = "ended", True, tx.now, None
    await queries.update_state(tx, organization_id, state)
    tx.queues_to_wake.add((BUILD_QUEUE, organization_id))


async def rebuild(tx: Tx, organization_id: UUID) -> bool:
    """Start a new build of the columns; return False if the organization has none."""
    state = await queries.lock_state(tx, organization_id)
    if state is None or state.state == "ended":
        return False
    await begin_epoch(tx, organization_id, state)
    return True


async def find_build_progress(tx: Tx, organization_id: UUID) -> BuildProgress | None:
    state = await queries.find_state(tx, organization_id)
    if state is None or state.state == "ended":
        return None
    state_name: Literal["building", "ready"] = "ready" if state.state == "ready" else "building"
    left_s = await _estimate_seconds_left(tx, organization_id, state) if state_name == "building" else None
    return BuildProgress(state_name, state.phase, state.done, max(state.total, state.done), left_s)


async def _estimate_seconds_left(tx: Tx, organization_id: UUID, state: State) -> int | None:
    """The time until all customers and sales are copied, or None while nothing can be said. Sales come last, and take
    most of the time."""
    if state.phase_at is None or not (state.done or state.phase == "sales"):
        return None
    left = max(0, state.total - state.done)
    measured_s = (tx.now - state.phase_at).total_seconds() * left / state.done if state.done else 0.0
    if state.phase == "sales":
        return round(measured_s if state.done else left / SALES_PER_SECOND_ASSUMED)
    sales = await queries.estimate_sales(tx, organization_id)
    return round(measured_s + sales / SALES_PER_SECOND_ASSUMED)


async def begin_epoch(tx: Tx, organization_id: UUID, state: State) -> None:
    """Discard the columns and start a new build; the caller holds the lock on the state."""
    state.epoch += 1
    state.state, state.format = "building", FORMAT
    state.begin_phase("waiting", tx.now)
    state.fence = state.fenced_at = None
    state.next_number, state.next_run, state.folded_to = 0, 1, 0
    state.erased_since = state.tidy_at = None
    state.is_littered, state.build_at = True, tx.now
    await queries.update_state(tx, organization_id, state)
    tx.queues_to_wake.add((BUILD_QUEUE, organization_id))
