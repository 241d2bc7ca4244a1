"""One locked row never stops a queue: the pass goes on behind it, in every queue there is."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import LockNotAvailable
from tests.support.drain_queues import SETTINGS
from tests.support.rows import Raw, insert_rows
from tests.support.waiting import until

from regulars.columns.model import FORMAT
from regulars.journeys.definition import read_definition as read_journey
from regulars.journeys.manage import activate, create_journey
from regulars.kit import vault
from regulars.kit.db import Database
from regulars.kit.public_address import PublicAddress
from regulars.kit.ssrf import AddressPolicy
from regulars.organizations.manage import create_organization
from regulars.segments.definition import read_definition as read_segment
from regulars.segments.saved.manage import create_segment
from regulars.texts.providers.gateways import open_gateways
from regulars.webhooks.manage import create_endpoint
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Queue
from regulars.worker import queues

ROWS = 5
# Shorter than otherwise: most turns here wait for a lock until then.
LOCK_MS = 100
# Longer than any turn waits for a lock, and shorter than a build used to.
LONG_S = 9.0
NUMBER = Raw("'+3361234567' || n")
JOURNEY = {
    "name": "J",
    "trigger": "purchase",
    "steps": [{"do": "set_attribute", "id": "a", "key": "k", "value": "v"}, {"do": "exit", "id": "b"}],
}
SEGMENT = {"name": "S", "match": {"type": "all", "of": [{"type": "bought"}]}}
CAMPAIGN = json.dumps({"name": "C", "include": [], "variants": []})
HASH = Raw("sha256(n::text::bytea)")
# What the rows of each queue need beside their time.
SEEDS: dict[str, dict[str, Any]] = {
    "outbox": {"topic": "sales.recorded", "payload": '[{"sales": []}]'},
    "outbox.retries": {"topic": "sales.recorded", "payload": '[{"sales": []}]', "listener": "sales.hourly_totals"},
    "stops": {},
    "texts": {"state": "queued", "origin_kind": "person", "phone_number": NUMBER, "number_hash": HASH},
    "journey_runs": {"state": "active", "fact_kind": "sale", "step": "a", "version": 1},
    "journey_backtests": {"definition": json.dumps(JOURNEY), "days": 7},
    "journeys.sweep": {"state": "ended", "fact_kind": "sale"},
    "journeys.sweep_holdouts": {},
    "holdouts": {"percent": 0},
    "campaigns.start": {"state": "scheduled", "definition": CAMPAIGN, "not_after": Raw("now() + interval '1 day'")},
    "campaigns": {"state": "ended", "definition": CAMPAIGN, "not_after": Raw("now()")},
    "campaigns.cost": {},
    "campaigns.sweep": {"outcome": "sent"},
    "attribution": {},
    "attribution.lift": {"kind": "campaign"},
    "attribution.recompute": {"walked_to": str(UUID(int=0)), "until": str(UUID(int=1))},
    "inbound": {"provider": "simulator", "settings": "{}"},
    "replies": {"meaning": "perhaps_stop", "phone_number": NUMBER, "number_hash": HASH},
    "texts.sweep_authors": {"state": "sent", "origin_kind": "answer", "step": Raw("'ann@shop.example ' || n")},
    "texts.sweep": {"state": "sent", "origin_kind": "person"},
    "clicks.sweep": {"class": "person"},
    "clicks.sweep_traces": {"class": "person"},
    "links.sweep": {},
    "replies.sweep": {"meaning": "other"},
    "replies.sweep_hashes": {},
    "catalog.counts": {"catalog": "attributes", "walked_to": str(UUID(int=0))},
    "sales.hourly_totals_fill": {"fence": str(UUID(int=1)), "walked_to": str(UUID(int=0)), "time_zone": "UTC"},
    "sales.blocks": {},
    "segments.build": {"state": "ended", "phase": "done", "is_littered": True},
    "segments.unneeded": {"state": "ready", "phase": "done", "format": FORMAT},
    "segment_sizes": {"version": 1},
    "consent.figures": {"time_zone": "UTC"},
    "webhooks.deliveries": {"state": "pending"},
    "webhooks.probes": {},
    "webhooks.sweep": {},
    "demo.run": {"tickets": 1},
    "idempotency.sweep": {},
    "request_log.sweep": {},
    "request_log.sweep_counts": {},
    "audit.sweep_addresses": {"address": "203.0.113.9"},
}
# The rows that one queue marks go with another.
FOLLOWED_BY = {"segments.unneeded": "segments.build"}


class House:
    """Two organizations whose rows are due in one queue."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.connection = psycopg.connect(database.url, autocommit=True)

    async def organization(self) -> UUID:
        async with self.database.connection() as connection:
            return (await create_organization(connection, f"Shop {uuid4()}")).id

    async def fill(self, queue: Queue, organization_id: UUID) -> None:
        # The time of an address follows from that of its row.
        column = "at" if queue.name == "audit.sweep_addresses" else queue.due.column
        given = {column: Raw("now() - interval '3 years' + n * interval '1 s'"), **SEEDS[queue.name]}
        if queue.name in ("journey_runs", "journey_backtests"):
            given["journey_id"] = await self.journey(organization_id)
        if queue.name == "journey_backtests":
            given["journey_id"] = Raw("gen_random_uuid()")
        if queue.name == "segment_sizes":
            await self._segments(organization_id)
        elif queue.name == "webhooks.probes":
            await self.endpoints(organization_id, ROWS)
            self.connection.execute(
                "UPDATE webhook_endpoints SET probe_at = now() - interval '1 hour', failures = 30"
                " WHERE organization_id = %s",
                (organization_id,),
            )
        else:
            if queue.name == "webhooks.deliveries":
                [given["endpoint_id"]] = await self.endpoints(organization_id, 1)
            insert_rows(self.connection, queue.due.table, organization_id, self.rows(queue), **given)
        if queue.name == "webhooks.probes":
            for endpoint_id in self.ids("webhook_endpoints", organization_id):
                insert_rows(
                    self.connection,
                    "webhook_deliveries",
                    organization_id,
                    1,
                    endpoint_id=endpoint_id,
                    state="pending",
                    due_at=Raw("now() - interval '1 hour'"),
                )

    def rows(self, queue: Queue) -> int:
        """One, where the organization is the whole key."""
        key = self.connection.execute(
            "SELECT cardinality(conkey) FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'",
            (queue.due.table,),
        ).fetchone()
        return 1 if key == (1,) else ROWS

    def ids(self, table: str, organization_id: UUID) -> list[str]:
        found = self.connection.execute(
            sql.SQL("SELECT id FROM {} WHERE organization_id = %s ORDER BY id").format(sql.Identifier(table)),
            (organization_id,),
        )
        return [str(row[0]) for row in found.fetchall()]

    def due(self, queue: Queue, *organizations: UUID) -> int:
        row = self.connection.execute(
            sql.SQL("SELECT count(*) FROM {} WHERE organization_id = ANY (%s) AND {} <= now() - %s AND {}").format(
                sql.Identifier(queue.due.table), sql.Identifier(queue.due.column), sql.SQL(queue.due.condition)
            ),
            (list(organizations), queue.due.delay),
        ).fetchone()
        assert row is not None
        return int(row[0])

    def states(self, table: str, organization_id: UUID) -> dict[str, str]:
        """By endpoint."""
        found = self.connection.execute(
            sql.SQL("SELECT endpoint_id, state FROM {} WHERE organization_id = %s").format(sql.Identifier(table)),
            (organization_id,),
        )
        return {str(row[0]): row[1] for row in found.fetchall()}

    async def journey(self, organization_id: UUID) -> str:
        async with self.database.transaction() as tx:
            journey = await create_journey(tx, organization_id, read_journey(json.dumps(JOURNEY).encode()))
            await activate(tx, organization_id, journey.row.id)
        return str(journey.row.id)

    async def _segments(self, organization_id: UUID) -> None:
        for number in range(ROWS):
            async with self.database.transaction() as tx:
                definition = read_segment(json.dumps({**SEGMENT, "name": f"S{number}"}).encode())
                await create_segment(tx, organization_id, definition)
        self.connection.execute(
            "UPDATE segments SET due_at = now() - interval '1 hour' WHERE organization_id = %s", (organization_id,)
        )

    async def endpoints(self, organization_id: UUID, many: int) -> list[str]:
        async with self.database.transaction() as tx:
            made = [
                await create_endpoint(
                    tx,
                    organization_id,
                    url="http://127.0.0.1:9/",
                    policy=AddressPolicy(SETTINGS.webhook_allow),
                    vault=vault.of(SETTINGS),
                )
                for _ in range(many)
            ]
        return [str(one.endpoint.id) for one in made]


@contextmanager
def held(url: str, table: str, organization_id: UUID, condition: str = "true") -> Iterator[None]:
    """The first row of the organization, in the order in which it is due or made."""
    with psycopg.connect(url) as holder:
        locked = holder.execute(
            sql.SQL("SELECT FROM {} WHERE organization_id = %s AND {} ORDER BY ctid LIMIT 1 FOR UPDATE").format(
                sql.Identifier(table),
                sql.SQL(condition),  # type: ignore[arg-type]  # a literal of this file
            ),
            (organization_id,),
        )
        assert locked.rowcount == 1
        yield


def with_house(url: str, act: Callable[[House, dict[str, Queue]], Awaitable[None]]) -> None:
    async def run() -> None:
        database = Database(url, pool_max=4, lock_timeout_ms=LOCK_MS)
        await database.open()
        gateways = open_gateways(
            database, vault=vault.of(SETTINGS), twilio_url=SETTINGS.twilio_url, address=PublicAddress()
        )
        opened = {queue.name: queue for queue in queues(SETTINGS, gateways)}
        house = House(database)
        try:
            await act(house, opened)
        finally:
            house.connection.close()
            for queue in opened.values():
                await queue.finish()
            await gateways.twilio.close()
            await database.close()

    asyncio.run(run())


async def turns(queue: Queue, database: Database, organization_id: UUID, many: int = 1) -> None:
    """As the loop gives them; a turn that fails is logged there, and the next comes."""
    for _ in range(many):
        with suppress(LockNotAvailable):
            while await queue.run_pass(database, organization_id):
                pass
        if isinstance(queue, ClaimQueue):
            await ClaimQueue.finish(queue)


def test_every_queue_has_a_row_to_hold():
    gateways: Any = type("Gateways", (), {"providers": {}, "twilio": None, "database": None})
    assert {queue.name for queue in queues(SETTINGS, gateways)} == set(SEEDS)


@pytest.mark.parametrize("name", SEEDS)
def test_a_locked_row_stops_no_other(columns_database_url, name):
    async def act(house: House, opened: dict[str, Queue]) -> None:
        queue = opened[name]
        first, second = await house.organization(), await house.organization()
        for organization_id in (first, second):
            await house.fill(queue, organization_id)
        assert house.due(queue, first, second) == 2 * house.rows(queue)
        with held(columns_database_url, queue.due.table, first):
            async with asyncio.timeout(LONG_S):
                for organization_id in (first, second):
                    for one in dict.fromkeys([queue, opened[FOLLOWED_BY.get(name, name)]]):
                        await turns(one, house.database, organization_id, house.rows(queue))
            assert house.due(queue, first, second) == 1

    with_house(columns_database_url, act)


def test_runs_go_on_behind_those_of_a_locked_customer(columns_database_url):
    """More of one customer than a turn takes."""

    async def act(house: House, opened: dict[str, Queue]) -> None:
        queue, organization_id = opened["journey_runs"], await house.organization()
        insert_rows(house.connection, "profiles", organization_id, 2, attributes="{}")
        busy, free = house.ids("profiles", organization_id)
        insert_rows(house.connection, "sms_settings", organization_id, 1, provider="simulator", settings="{}")
        given = {**SEEDS["journey_runs"], "journey_id": await house.journey(organization_id)}
        for profile_id, hours, many in ((busy, 2, 150), (free, 1, 120)):
            due_at = Raw(f"now() - interval '{hours} hours'")
            insert_rows(
                house.connection,
                "journey_runs",
                organization_id,
                many,
                profile_id=profile_id,
                due_at=due_at,
                fact_id=Raw("gen_random_uuid()"),
                **given,
            )
        with held(columns_database_url, "profiles", organization_id, f"id = '{busy}'"):
            await turns(queue, house.database, organization_id)
            assert house.due(queue, organization_id) == 150
        await turns(queue, house.database, organization_id)
        assert house.due(queue, organization_id) == 0

    with_house(columns_database_url, act)


@pytest.mark.parametrize("name", ["texts", "replies"])
def test_texts_and_replies_go_on_behind_a_locked_number(columns_database_url, name):
    async def act(house: House, opened: dict[str, Queue]) -> None:
        queue, organization_id = opened[name], await house.organization()
        await house.fill(queue, organization_id)
        insert_rows(
            house.connection, "subscriptions", organization_id, ROWS, number_hash=HASH, status="UNSUBSCRIBED",
            latest_opt_out_at=Raw("now()"),
        )  # fmt: skip
        with held(columns_database_url, "subscriptions", organization_id, "number_hash = sha256('1')"):
            await turns(queue, house.database, organization_id, ROWS)
            assert house.due(queue, organization_id) == 1
        await turns(queue, house.database, organization_id)
        assert house.due(queue, organization_id) == 0

    with_house(columns_database_url, act)


def test_outcomes_are_written_beside_one_whose_endpoint_is_locked(columns_database_url):
    async def act(house: House, opened: dict[str, Queue]) -> None:
        queue, organization_id = opened["webhooks.deliveries"], await house.organization()
        busy, free = await house.endpoints(organization_id, 2)
        for endpoint_id in (busy, free):
            insert_rows(
                house.connection, "webhook_deliveries", organization_id, 1, endpoint_id=endpoint_id, state="pending",
                due_at=Raw("now() - interval '1 hour'"),
            )  # fmt: skip
        assert isinstance(queue, ClaimQueue)
        async with house.database.transaction() as tx:
            deadline = tx.now + queue.claim_for
            claims = await queue.claim(tx, organization_id, limit=10, lowest=0, owner=queue.owner, until=deadline)
        assert len(claims) == 2
        with held(columns_database_url, "webhook_endpoints", organization_id, f"id = '{busy}'"):
            settling = asyncio.create_task(
                queue._complete_in_time(house.database, organization_id, [(claim, None) for claim in claims])
            )
            await until(
                lambda: house.states("webhook_deliveries", organization_id)[free] == "cancelled", seconds=LONG_S
            )
            assert house.states("webhook_deliveries", organization_id)[busy] == "pending"
        await settling
        assert set(house.states("webhook_deliveries", organization_id).values()) == {"cancelled"}

    with_house(columns_database_url, act)
