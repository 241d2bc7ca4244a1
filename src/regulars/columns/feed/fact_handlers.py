"""Listeners that keep the columns, a columnar copy of customers and sales, up to date with the facts of other modules.

A fact is a recorded event, which has only the ids of the changed rows. A listener locks the state of the organization's
columns, and then reads these rows. So the order of facts does not matter, and of two concurrent workers the second sees
the same rows or newer rows. The columns are written in the transaction that deletes the facts, so each fact takes
effect exactly once. A listener is called only for organizations that have columns (`needed_if`).
"""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from regulars.columns import column_rows as columns
from regulars.columns.feed import queries
from regulars.columns.feed.runs import write_customers, write_sales
from regulars.columns.feed.sales_queries import find_sales
from regulars.columns.lifecycle import begin_epoch
from regulars.columns.model import FORMAT, State
from regulars.consent.facts import SubscriptionsChanged
from regulars.kit.db import Tx
from regulars.profiles.facts import ProfilesChanged
from regulars.sales.facts import SalesRecorded
from regulars.texts.facts import MessagesChanged
from regulars.work.facts import needed_if

# The columns contain only texts in these states, as sent or as unknown.
_STORED_AS: Final = {"sent": "sent", "delivered": "sent", "unknown": "unknown"}


@needed_if(columns.HAS_COLUMNS)
async def on_sales_recorded(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    state = await _lock(tx, organization_id)
    if state is None:
        return
    sale_ids = {sale for fact in facts for sale in fact.sales}
    sales = await find_sales(tx, organization_id, sorted(sale_ids))
    if sales is not None:
        await write_sales(tx, organization_id, state, sales)
    if state.state == "building":
        # The build skips these sales.
        await columns.insert_written_sales(tx, organization_id, state.epoch, sorted(sale_ids))
    await _save_state(tx, organization_id, state)


@needed_if(columns.HAS_COLUMNS)
async def on_profiles_changed(tx: Tx, organization_id: UUID, facts: Sequence[ProfilesChanged]) -> None:
    await _refresh_customers(tx, organization_id, {change.id for fact in facts for change in fact.changes})


@needed_if(columns.HAS_COLUMNS)
async def on_subscriptions_changed(tx: Tx, organization_id: UUID, facts: Sequence[SubscriptionsChanged]) -> None:
    changes = [change for fact in facts for change in fact.changes]
    profile_ids = {change.profile_id for change in changes if change.profile_id is not None}
    profile_ids |= await queries.find_once_linked(tx, organization_id, sorted({change.id for change in changes}))
    state = await _lock(tx, organization_id)
    if state is not None:
        # The analysis process reads the do-not-contact numbers again when this counter changes.
        state.consents += 1
        await write_customers(tx, organization_id, state, profile_ids)
        await _save_state(tx, organization_id, state)


@needed_if(columns.HAS_COLUMNS)
async def on_messages_changed(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    profile_ids = {fact.profile_id for fact in facts if fact.profile_id is not None and _changes_columns(fact)}
    hashes = {fact.number_hash for fact in facts if not isinstance(fact.number_hash, msgspec.UnsetType)}
    if hashes:
        profile_ids |= await queries.find_linked_by_hash(tx, organization_id, sorted(hashes))
    await _refresh_customers(tx, organization_id, profile_ids)


def _changes_columns(fact: MessagesChanged) -> bool:
    """Whether the fact may change the columns. They contain only whether a text was sent (`queries.find_texts`), so
    most facts, such as a change from sent to delivered, do not matter."""
    return fact.previous_state is None or _STORED_AS.get(fact.previous_state) != _STORED_AS.get(fact.state or "")


async def _refresh_customers(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    state = await _lock(tx, organization_id) if profile_ids else None
    if state is not None:
        await write_customers(tx, organization_id, state, profile_ids)
        await _save_state(tx, organization_id, state)


async def _lock(tx: Tx, organization_id: UUID) -> State | None:
    """Lock and return the state of the organization's columns; None if it has none. Start a new build if the columns
    have the format of an older release."""
    state = await columns.lock_state(tx, organization_id, longest_wait=columns.WORKER_LOCK_TIMEOUT)
    if state is None or state.state == "ended":
        return None
    if state.format > FORMAT:
        # The facts are retried later.
        raise RuntimeError("A newer release writes these columns; its worker takes the facts.")
    if state.format < FORMAT:
        # The new build will also read the rows that the facts name.
        await begin_epoch(tx, organization_id, state)
    return state


async def _save_state(tx: Tx, organization_id: UUID, state: State) -> None:
    state.request_compaction(tx.now)
    await columns.update_state(tx, organization_id, state)
