"""Drive journeys in an organization of its own: facts are recorded and queues are given turns by hand."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from tests.texts import desk as texts_desk

from regulars.consent.facts import SubscriptionsChanged
from regulars.journeys import manage
from regulars.journeys.definition import read_definition
from regulars.journeys.model import RunRow, TraceRow
from regulars.journeys.runs.enter import enter_by_consents, enter_by_sales
from regulars.journeys.runs.fact_handlers import handle_consents, handle_messages, handle_sales
from regulars.journeys.runs.lists import list_runs
from regulars.journeys.runs.queue import RunQueue
from regulars.journeys.runs.trace import list_trace
from regulars.kit.db import Database, Tx
from regulars.kit.ids import new_uuid
from regulars.kit.keyset import PageRequest
from regulars.sales.facts import SalesRecorded
from regulars.texts.facts import MessagesChanged
from regulars.work.outbox import OutboxQueue
from regulars.work.queue import Queue

T = TypeVar("T")
LISTENERS = {
    SalesRecorded: {"hear": handle_sales, "enter": enter_by_sales},
    SubscriptionsChanged: {"hear": handle_consents, "enter": enter_by_consents},
    MessagesChanged: {"hear": handle_messages},
}


class Desk(texts_desk.Desk):
    def __init__(self, runner: asyncio.Runner, database: Database) -> None:
        super().__init__(runner, database)
        self.outbox = OutboxQueue(LISTENERS)
        self.runs_queue = RunQueue()
        self.store_id = self.store("PARIS", name="Rivoli")

    def do(self, act: Callable[[Tx], Awaitable[T]], *, now: datetime | None = None) -> T:
        done = super().do(act, now=now)
        # Facts are ordered by milliseconds: what is done next comes later than this.
        wait_for_next_millisecond()
        return done

    def customer(self, name: str = "C1", **given: Any) -> UUID:
        return super().customer(name, **{"first_name": "Zoé", **given})

    def sale(self, profile_id: UUID | None, **given: Any) -> UUID:
        """Record a sale and its fact, as every path does; the next pass of the outbox delivers it."""
        sale_id = self.do(lambda tx: self.write_sale(tx, profile_id, **given))
        self.publish_sales(sale_id)
        return sale_id

    def sell(self, *profile_ids: UUID | None, **given: Any) -> None:
        """Records a sale to each, and gives all queues their turns."""
        for profile_id in profile_ids:
            self.sale(profile_id, **given)
        self.work()

    async def write_sale(
        self,
        tx: Tx,
        profile_id: UUID | None,
        *,
        kind: str = "PURCHASE",
        amount: int = 1990,
        ago: timedelta = timedelta(0),
        lines: Any = (),
        sale_id: UUID | None = None,
    ) -> UUID:
        """The row alone, in a transaction that is still open."""
        sale_id = sale_id or new_uuid()
        await tx.execute(
            "INSERT INTO sales_events (organization_id, id, store_id, profile_id, occurred_at, created_at,"
            " total_amount_cents, total_discount_cents, external_id, type, currency, line_items)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, 0, %s, %s, 'EUR', %s::json)",
            (
                self.organization_id, sale_id, self.store_id, profile_id, tx.now - ago, tx.now, amount,
                str(sale_id), kind, json.dumps(lines),
            ),
        )  # fmt: skip
        return sale_id

    def publish_sales(self, *sale_ids: UUID) -> None:
        payload = msgspec.json.encode([SalesRecorded(list(sale_ids))]).decode()
        self.alter(
            # To the millisecond, as a transaction knows its time: it is due for a turn that begins right after it.
            "INSERT INTO outbox (organization_id, id, topic, payload, created_at, due_at)"
            " VALUES (%s, %s, %s, %s::json, now(), date_trunc('milliseconds', now()))",
            new_uuid(), "sales.recorded", payload,
        )  # fmt: skip

    def work(self) -> None:
        """Turns of all queues until nothing is due."""
        for _ in range(6):
            self.runner.run(self._turn(self.resumed, self.outbox, self.runs_queue, self.texts_queue))

    def one_pass(self, queue: Queue) -> None:
        self.runner.run(queue.run_pass(self.database, self.organization_id))

    def pass_time(self) -> None:
        """Whatever waits for a time has waited."""
        self.alter(
            "UPDATE journey_runs SET waiting_since = now() - interval '400 days'"
            " WHERE organization_id = %s AND due_at IS NOT NULL AND waiting_since IS NOT NULL"
        )
        self.alter(
            "UPDATE journey_runs SET due_at = now() - interval '1 second'"
            " WHERE organization_id = %s AND due_at IS NOT NULL"
        )
        self.work()

    def journey(self, *steps: dict[str, Any], live: bool = True, **more: Any) -> UUID:
        given = {"name": "A journey", "trigger": "purchase", "steps": list(steps), **more}
        definition = read_definition(json.dumps(given).encode())
        created = self.do(lambda tx: manage.create_journey(tx, self.organization_id, definition))
        if live:
            self.activate(created.row.id)
        return created.row.id

    def activate(self, journey_id: UUID, **more: Any) -> None:
        self.do(lambda tx: manage.activate(tx, self.organization_id, journey_id, **more))

    def runs(self, journey_id: UUID) -> list[RunRow]:
        """The oldest first."""
        found = self.do(lambda tx: list_runs(tx, self.organization_id, journey_id, PageRequest(1000)))
        return list(reversed(found))

    def outcomes(self, journey_id: UUID) -> list[str | None]:
        return [run.outcome for run in self.runs(journey_id)]

    def trace(self, run: RunRow) -> list[TraceRow]:
        return list(self.do(lambda tx: list_trace(tx, self.organization_id, run.id)))

    def events(self, run: RunRow) -> list[tuple[str | None, str]]:
        return [(row.step, row.event) for row in self.trace(run)]

    @property
    def sent(self) -> list[str]:
        return [text.body for text in self.gateway.sent]


def wait_for_next_millisecond() -> None:
    begun = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == begun:
        time.sleep(0.0002)
