"""Draw the global holdout of a quarter: choose at random which customers get no campaign texts, page by page.

One transaction stores a page of customers together with the progress of the draw, so after a crash no customer is
missing or drawn twice. The customers of quarters that ended long ago are deleted.
"""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Final
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.consent.numbers import find_text_numbers, list_subscribed_profiles
from regulars.experiments.facts import HoldoutQuarterChanged
from regulars.experiments.holdout import queries
from regulars.experiments.holdout.model import (
    RETENTION,
    HoldoutRow,
    QuarterRow,
    draw,
    first_whole_day,
    next_quarter,
    quarter_of,
)
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.texts.find import find_suppressed
from regulars.texts.text_rows import load_zone
from regulars.work import outbox
from regulars.work.queue import Due, RowQueue, Schedule, WaitLimit

QUEUE: Final = "holdouts"
PAGE_CUSTOMERS: Final = 5_000
_NIL_ID: Final = UUID(int=0)


class HoldoutDraws(RowQueue[HoldoutRow]):
    """The queue of organizations whose next page of customers is to be drawn or deleted."""

    name = QUEUE
    schedule = Schedule(waits_s=(5, 30, 120, 600, 3600))
    due = Due(
        table="holdouts",
        waits=(
            schedule.retries(),
            WaitLimit(at_most=(timedelta(0),), condition="attempts = 0 AND due_at <= changed_at"),
        ),
    )
    # An organization has only one row, so every batch is full; after a full batch, the worker looks for more work.
    batch_rows = 1

    async def take(self, tx: Tx, organization_id: UUID, *, limit: int) -> Sequence[HoldoutRow]:
        del limit  # an organization has only one row
        return await tx.fetch_all(
            HoldoutRow,
            "SELECT {columns} FROM holdouts WHERE organization_id = %s AND due_at <= %s FOR UPDATE SKIP LOCKED",
            (organization_id, tx.now),
        )

    async def act(self, tx: Tx, organization_id: UUID, rows: Sequence[HoldoutRow]) -> None:
        for row in rows:
            await queries.set_due(tx, organization_id, await _handle_page(tx, organization_id, row))

    async def postpone(
        self, tx: Tx, organization_id: UUID, row: HoldoutRow, *, attempts: int, due_at: datetime | None
    ) -> None:
        del row  # an organization has only one row
        await queries.set_due(tx, organization_id, due_at, attempts=attempts)


async def _handle_page(tx: Tx, organization_id: UUID, row: HoldoutRow) -> datetime | None:
    """Draw a page of customers, or delete a page of customers of old quarters. Returns when the next page is due; None
    if nothing is left to do."""
    zone = await load_zone(tx, organization_id)
    today = day_of(tx.now, zone)
    quarter = quarter_of(today)
    if row.percent and await _draw_page(tx, organization_id, row, quarter=quarter, today=today):
        return tx.now
    oldest = quarter_of(today - RETENTION)
    if await queries.delete_customers_before(tx, organization_id, oldest, limit=PAGE_CUSTOMERS):
        return tx.now
    if row.percent or await queries.is_any_customer_stored(tx, organization_id):
        return datetime.combine(next_quarter(quarter), time(), zone)
    return None


async def _draw_page(tx: Tx, organization_id: UUID, row: HoldoutRow, *, quarter: date, today: date) -> bool:
    """Draw the next page of customers for the quarter; False if the draw is complete or was stopped."""
    newest = next(iter(await queries.list_quarters(tx, organization_id)), None)
    if newest is None or newest.quarter < quarter:
        begins_on = first_whole_day(quarter, today)
        newest = QuarterRow(quarter, row.percent, begins_on, None, None, None, 0, 0)
        await tx.execute(
            "INSERT INTO holdout_quarters (organization_id, quarter, percent, begins_on) VALUES (%s, %s, %s, %s)",
            (organization_id, *newest[:3]),
        )
    if newest.drawn_at is not None or newest.stopped_at is not None:
        return False
    page = await list_subscribed_profiles(tx, organization_id, after=newest.drawn_to or _NIL_ID, limit=PAGE_CUSTOMERS)
    numbers = await find_text_numbers(tx, organization_id, page)
    suppressed = await find_suppressed(tx, organization_id, {number.number_hash for number in numbers.values()})
    drawn = [
        draw(organization_id, newest.quarter, profile_id, percent=newest.percent)
        for profile_id in page
        if profile_id in numbers and numbers[profile_id].number_hash not in suppressed
    ]
    if drawn:
        await queries.insert_customers(tx, organization_id, newest.quarter, drawn)
    newest = newest._replace(
        drawn_to=page[-1] if page else newest.drawn_to,
        drawn_at=tx.now if len(page) < PAGE_CUSTOMERS else None,
        customers=newest.customers + len(drawn),
        held_out=newest.held_out + sum(customer.is_held_out for customer in drawn),
    )
    await queries.save_draw(tx, organization_id, newest)
    failpoint.hit("holdout.drawn", tx.connection.drop_connection)
    if newest.drawn_at is not None:
        fact = HoldoutQuarterChanged(newest.quarter, newest.percent, newest.begins_on, newest.ends_on)
        await outbox.record(tx, organization_id, [fact])
    return True
