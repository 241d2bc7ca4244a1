"""Facts that arrive three times from several clients, and from a file at the same time, while the worker is killed: the
real server, the real worker, the real import, and a Twilio on loopback."""

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from tests.messaging.fake_twilio import ACCOUNT, TOKEN, fake_twilio
from tests.messaging.fire import KEY, Worker
from tests.support.desk import ORIGIN
from tests.support.fork_server import fork_server
from tests.support.gateway import ALWAYS
from tests.support.server import Server
from tests.support.tenant import Tenant
from tests.support.waiting import until

from regulars.consent.opt_in import Consent, opt_in
from regulars.journeys import manage
from regulars.journeys.definition import read_definition
from regulars.kit.db import Database
from regulars.kit.ids import ByExternalId
from regulars.kit.vault import Vault
from regulars.messaging.settings.model import OptOutNotice, SmsSettings, TwilioAccount
from regulars.messaging.settings.store import load_texting, save_texting, seal_token
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles
from regulars.stores.model import StoreUpsert
from regulars.stores.upsert import upsert_stores

CHUNK = 200
TIMES = 3
IN_FLIGHT = 12
DEADLINE_S = 600.0
# Journeys by what brings customers in: tickets over the API, consents over the API, tickets over the API and in a file.
KINDS = ("ticket", "consent", "file")


@dataclass
class Report:
    """How often each fact has a run, how the runs ended, and which numbers the provider was asked to text."""

    runs: dict[str, Counter[str]] = field(default_factory=dict)
    outcomes: Counter[str | None] = field(default_factory=Counter)
    arrived: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    imported: dict[str, Any] = field(default_factory=dict)
    kills: int = 0


def play(
    server: Server, database_url: str, tenant: Tenant, *, facts: int, kills: int, seed: int, folder: Path
) -> Report:
    """`facts` of each kind."""
    return asyncio.run(_Game(server, database_url, tenant, facts=facts, seed=seed, folder=folder).play(kills))


class _Game:
    def __init__(
        self, server: Server, database_url: str, tenant: Tenant, *, facts: int, seed: int, folder: Path
    ) -> None:
        self._server = server
        self._database_url = database_url
        self._tenant = tenant
        self._facts = facts
        self._chance = random.Random(seed)
        self._folder = folder
        self._report = Report()
        self._journeys: dict[str, Any] = {}

    async def play(self, kills: int) -> Report:
        database = Database(self._database_url, pool_max=4)
        await database.open()
        try:
            async with fake_twilio() as fake:
                fake.respond = lambda form: self._report.arrived.update([form["To"]])
                fake.stalls_s = 0.05
                await self._prepare(database)
                worker = Worker(self._database_url, fake.url, self._server.url)
                worker.start()
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(self._send_all())
                        group.create_task(self._import_file())
                        group.create_task(self._kill(worker, kills, database))
                    await self._wait_until_ended(database)
                finally:
                    worker.end(signal.SIGTERM)
                await self._read(database)
        finally:
            await database.close()
        return self._report

    def _number(self, kind: str, number: int) -> str:
        return f"+336{KINDS.index(kind) + 1}{number:07d}"

    def _customer(self, kind: str, number: int) -> str:
        return f"{kind}-{number}"

    async def _prepare(self, database: Database) -> None:
        organization_id = self._tenant.organization_id
        async with database.transaction() as tx:
            found = await load_texting(tx, organization_id)
            assert found is not None
            settings = SmsSettings(
                brand="Shop",
                rules={"FR": ALWAYS},
                caps=(),
                notices={"FR": OptOutNotice("STOP 36111", "36111")},
                twilio=TwilioAccount(ACCOUNT, "Shop"),
            )
            token = seal_token(Vault(KEY), organization_id, TOKEN)
            await save_texting(
                tx, organization_id, replace(found, provider="twilio", settings=settings, encrypted_token=token)
            )
            await upsert_stores(tx, organization_id, [StoreUpsert(external_id=kind) for kind in KINDS])
        for kind in KINDS:
            for start in range(0, self._facts, CHUNK):
                await self._make_customers(database, kind, range(start, min(start + CHUNK, self._facts)), found.secret)
        for kind in KINDS:
            self._journeys[kind] = await self._make_journey(database, kind)

    async def _make_customers(self, database: Database, kind: str, numbers: range, secret: bytes) -> None:
        async with database.transaction() as tx:
            customers = [ProfileUpsert(external_id=self._customer(kind, it)) for it in numbers]
            await upsert_profiles(tx, self._tenant.organization_id, customers)
            consents = [
                Consent(
                    phone_number=self._number(kind, it),
                    source="OTHER",
                    consented_at=tx.now,
                    origin=ORIGIN,
                    profile=ByExternalId(self._customer(kind, it)),
                )
                for it in numbers
            ]
            if kind != "consent":
                await opt_in(tx, self._tenant.organization_id, consents, secret=secret)

    async def _make_journey(self, database: Database, kind: str) -> Any:
        given: dict[str, Any] = {
            "name": kind,
            "trigger": "opt_in" if kind == "consent" else "purchase",
            "steps": [
                {"do": "set_attribute", "key": "welcomed", "value": "true"},
                {"do": "send_text", "text": "Merci"},
            ],
        }
        if kind != "consent":
            given["filter"] = {"type": "store", "any_of": [kind]}
        async with database.transaction() as tx:
            definition = read_definition(json.dumps(given).encode())
            created = await manage.create_journey(tx, self._tenant.organization_id, definition)
            await manage.activate(tx, self._tenant.organization_id, created.row.id)
        return created.row.id

    def _ticket(self, kind: str, number: int) -> dict[str, Any]:
        return {
            "external_id": f"{kind}:{number}",
            "type": "PURCHASE",
            "occurred_at": (datetime.now(UTC) - timedelta(hours=1)).replace(microsecond=0).isoformat(),
            "store_id": kind,
            "profile_id": self._customer(kind, number),
            "currency": "EUR",
            "total_amount_cents": 1990,
            "total_discount_cents": 0,
            "line_items": [{"quantity": 1, "total_price_cents": 1990}],
        }

    def _request(self, kind: str, number: int) -> tuple[str, dict[str, Any]]:
        if kind == "consent":
            return "/v1/subscriptions/opt-in", {
                "phone_number": self._number(kind, number),
                "profile_id": self._customer(kind, number),
                "consent_source": "WEBSITE",
                "consented_at": (datetime.now(UTC) - timedelta(hours=1)).isoformat(),
            }
        return "/v1/sales-events", self._ticket(kind, number)

    async def _send_all(self) -> None:
        """Each client sends everything, in an order of its own, and again whatever was not answered well."""
        orders = [self._order() for _ in range(TIMES)]
        async with asyncio.TaskGroup() as group:
            for order in orders:
                group.create_task(self._send(order))

    def _order(self) -> list[tuple[str, dict[str, Any]]]:
        """The tickets of the file come last: the import, which takes its time to start, is at it by then."""
        first = [self._request(kind, number) for kind in KINDS if kind != "file" for number in range(self._facts)]
        last = [self._request("file", number) for number in range(self._facts)]
        return [*self._chance.sample(first, len(first)), *self._chance.sample(last, len(last))]

    async def _send(self, requests: Sequence[tuple[str, dict[str, Any]]]) -> None:
        headers = {"x-api-key": self._tenant.key}
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(self._server.url, headers=headers, timeout=timeout) as session:
            waiting = iter(requests)

            async def send_some() -> None:
                for path, body in waiting:
                    await _until_taken(session, path, body)

            async with asyncio.TaskGroup() as group:
                for _ in range(IN_FLIGHT):
                    group.create_task(send_some())

    async def _import_file(self) -> None:
        file = self._folder / "tickets.ndjson"
        numbers = self._chance.sample(range(self._facts), self._facts)
        file.write_text("".join(json.dumps(self._ticket("file", it)) + "\n" for it in numbers), "utf-8")
        arguments = ("import", "sales", str(file), "--organization", await self._name(), "--json")
        environment = {"DATABASE_URL": self._database_url, "REGULARS_SECRET_KEY": KEY}
        said, complained = self._folder / "imported.json", self._folder / "imported.log"
        process = fork_server().start(
            "tests.support.cli", *arguments, environment=environment, log=complained, output=said
        )
        code = await asyncio.to_thread(process.wait, DEADLINE_S)
        assert code == 0, complained.read_text()
        self._report.imported = json.loads(said.read_text())

    async def _name(self) -> str:
        database = Database(self._database_url, pool_max=2)
        await database.open()
        try:
            async with database.reading() as tx:
                rows = await tx.fetch("SELECT name FROM organizations WHERE id = %s", (self._tenant.organization_id,))
            return str(rows[0][0])
        finally:
            await database.close()

    async def _kill(self, worker: Worker, kills: int, database: Database) -> None:
        """Each time when it has taken its share of the texts, so that it is in the middle of everything.

        Texts that reached the provider would be the wrong count: those a killed worker had taken may never arrive.
        """
        share = len(KINDS) * self._facts / (kills + 1)
        for number in range(1, kills + 1):
            await until(partial(self._has_taken, database, number * share * 0.9), seconds=DEADLINE_S)
            await asyncio.sleep(self._chance.uniform(0, 0.2))
            await asyncio.to_thread(worker.end)
            self._report.kills += 1
            worker.start()

    async def _has_taken(self, database: Database, enough: float) -> bool:
        async with database.reading() as tx:
            taken = await tx.fetch_count(
                "SELECT count(*) FROM texts WHERE organization_id = %s AND state <> 'queued'",
                (self._tenant.organization_id,),
            )
        return taken >= enough

    async def _wait_until_ended(self, database: Database) -> None:
        async def is_ended() -> bool:
            return not any((await self._waiting(database)).values())

        await until(is_ended, seconds=DEADLINE_S, every_s=0.1, show=lambda: self._waiting(database))

    async def _waiting(self, database: Database) -> dict[str, int]:
        given = {"organization_id": self._tenant.organization_id}
        async with database.reading() as tx:
            rows = await tx.fetch(
                """
                SELECT 'facts', count(*) FROM outbox WHERE organization_id = %(organization_id)s
                UNION ALL SELECT 'retries', count(*) FROM outbox_retries WHERE organization_id = %(organization_id)s
                UNION ALL SELECT 'runs', count(*) FROM journey_runs
                    WHERE organization_id = %(organization_id)s AND state <> 'ended'
                UNION ALL SELECT 'texts', count(*) FROM texts
                    WHERE organization_id = %(organization_id)s AND state IN ('queued', 'sending')
                """,
                given,
            )
        return {row[0]: row[1] for row in rows}

    async def _read(self, database: Database) -> None:
        organization_id = self._tenant.organization_id
        async with database.reading() as tx:
            for kind, journey_id in self._journeys.items():
                rows = await tx.fetch(
                    "SELECT fact_id, count(*) FROM journey_runs WHERE organization_id = %s AND journey_id = %s"
                    " GROUP BY fact_id",
                    (organization_id, journey_id),
                )
                self._report.runs[kind] = Counter({row[0]: row[1] for row in rows})
            self._report.outcomes = await _count(
                tx.fetch, "SELECT outcome, count(*) FROM journey_runs WHERE organization_id = %s GROUP BY outcome",
                organization_id,
            )  # fmt: skip
            self._report.texts = await _count(
                tx.fetch, "SELECT state, count(*) FROM texts WHERE organization_id = %s GROUP BY state", organization_id
            )


async def _count(fetch: Callable[[Any, Any], Awaitable[Any]], query: str, organization_id: Any) -> Counter[Any]:
    return Counter({row[0]: row[1] for row in await fetch(query, (organization_id,))})


async def _until_taken(session: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> None:
    for _ in range(30):
        async with session.post(path, json=body) as response:
            said = await response.text()
        if response.status in {200, 201}:
            return
        assert response.status in {429, 503}, said
        await asyncio.sleep(0.2)
    raise AssertionError(f"{path} was never taken: {said}")
