"""Keeps credits (purchases attributed to texts) current: listeners enqueue customers whose sales, texts or clicks
changed, and queues compute the credits of these customers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from regulars.attribution import due_customers, recompute
from regulars.attribution.compute import compute_customers
from regulars.attribution.due_customers import COMPUTED_AFTER
from regulars.attribution.model import TOUCHING_ORIGINS, TOUCHING_STATES
from regulars.attribution.queries import DueCustomer
from regulars.attribution.recompute import Recompute
from regulars.attribution.windows import find_windows
from regulars.kit.db import Tx
from regulars.links.facts import LinkClicked
from regulars.sales.facts import SalesRecorded
from regulars.texts.facts import MessagesChanged
from regulars.work.facts import needed_if
from regulars.work.outbox import has_interest, register_interest
from regulars.work.queue import Due, RowQueue, Schedule, WaitLimit


@needed_if(due_customers.HAS_RECENT_TEXTS)
async def handle_sales(tx: Tx, organization_id: UUID, facts: Sequence[SalesRecorded]) -> None:
    """Enqueue the customers whose credits new sales may change."""
    await due_customers.make_due_by_sales(tx, organization_id, [sale for fact in facts for sale in fact.sales])


async def handle_messages(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    """Enqueue the customers of texts that became sent, or no longer count as sent."""
    changed: dict[bool, set[UUID]] = {True: set(), False: set()}
    for fact in facts:
        if fact.text_id is None or fact.origin_kind not in TOUCHING_ORIGINS:
            continue
        is_touch = _is_touch(fact.state)
        if fact.previous_state is None or _is_touch(fact.previous_state) != is_touch:
            changed[is_touch].add(fact.text_id)
    if changed[True]:
        await due_customers.make_due_by_texts(tx, organization_id, changed[True])
    # If the text is sent again, it has no time of sending, or one after the purchases that are credited to it.
    if changed[False]:
        await due_customers.make_due_by_credited_texts(tx, organization_id, changed[False])


async def handle_clicks(tx: Tx, organization_id: UUID, facts: Sequence[LinkClicked]) -> None:
    """Enqueue the customers who clicked a link in a text, if they bought after the text."""
    await due_customers.make_due_by_texts(tx, organization_id, {fact.text_id for fact in facts})


def _is_touch(state: str | None) -> bool:
    return state in TOUCHING_STATES


class CustomerQueue(RowQueue[DueCustomer]):
    name = due_customers.QUEUE
    schedule = Schedule(waits_s=(5, 60, 600, 3600))
    due = Due(
        table="attribution_customers",
        waits=(schedule.retries(), WaitLimit(at_most=(COMPUTED_AFTER,), condition="attempts = 0")),
    )
    batch_rows = 50

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[DueCustomer]:
        return await due_customers.take_customers(tx, organization_id, limit=limit)

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[DueCustomer]) -> None:
        windows = (await find_windows(tx, organization_id)).windows
        await compute_customers(tx, organization_id, {row.profile_id: row.since for row in rows}, windows=windows)
        ids = [row.profile_id for row in rows]
        if await has_interest(tx, organization_id, LinkClicked):
            await due_customers.delete_customers(tx, organization_id, ids)
            return
        # These are the organization's first customers. Changes of texts and clicks are recorded only from this
        # transaction on, so compute these customers once more.
        for fact in (LinkClicked, MessagesChanged):
            await register_interest(tx, organization_id, fact, needed_by=due_customers.NEEDED_BY)
        await due_customers.make_due(tx, organization_id, ids)

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: DueCustomer, *, attempts: int, due_at: datetime | None
    ) -> None:
        await due_customers.postpone_customer(tx, organization_id, row.profile_id, attempts=attempts, due_at=due_at)


class RecomputeQueue(RowQueue[Recompute]):
    name = recompute.RECOMPUTE_QUEUE
    schedule = Schedule(waits_s=(5, 60, 600, 3600))
    due = Due(
        table="attribution_recomputes",
        waits=(schedule.retries(), WaitLimit(at_most=(timedelta(0),), condition="attempts = 0")),
    )
    # An organization has one row.
    key = ()
    batch_rows = 1

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[Recompute]:
        return (await recompute.take_recompute(tx, organization_id))[:limit]

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[Recompute]) -> None:
        for row in rows:
            await recompute.process_page(tx, organization_id, row)
        tx.queues_to_wake.add((CustomerQueue.name, organization_id))
