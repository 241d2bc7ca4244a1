"""Withdrawals in the middle of a large send, with senders that are killed: the real server, the real worker, and a
Twilio on loopback whose clock decides."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
from tests.messaging.fake_twilio import ACCOUNT, TOKEN, FakeTwilio, fake_twilio
from tests.support.claims import expire_claims
from tests.support.desk import ORIGIN
from tests.support.fork_server import Child, fork_server
from tests.support.gateway import ALWAYS
from tests.support.server import Server
from tests.support.tenant import Tenant
from tests.support.waiting import until

from regulars.consent.opt_in import Consent, opt_in
from regulars.kit.db import Database
from regulars.kit.ids import ByExternalId, new_uuid
from regulars.kit.vault import Vault
from regulars.messaging.model import OriginKind
from regulars.messaging.providers.gateways import inbound_url
from regulars.messaging.providers.twilio import sign
from regulars.messaging.request import TextOrder, request_texts
from regulars.messaging.settings.model import OptOutNotice, SmsSettings, TwilioAccount
from regulars.messaging.settings.store import Texting, load_texting, save_texting, seal_token
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles

KEY = "a key for tests, of more than 32 characters"
CHUNK = 200
QUIET_S_MAX = 240.0
END_SECONDS_MAX = 60
# Long enough that withdrawals meet texts on their way.
PROVIDER_S = 0.8
WITHDRAW_FOR_S = 8.0
SENT_BETWEEN_KILLS = 30
CONFIRMATION = "Vous ne recevrez plus"


@dataclass
class Report:
    """When each withdrawal was answered, when the provider got what, and how the texts ended."""

    answered: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    arrived: list[tuple[float, str, str]] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)

    def texts(self) -> list[tuple[float, str]]:
        return [(at, number) for at, number, body in self.arrived if CONFIRMATION not in body]

    def late(self) -> list[str]:
        """Numbers that got a text after their withdrawal was answered."""
        return [number for at, number in self.texts() if at > self.answered.get(number, float("inf"))]

    def met(self) -> int:
        """How many withdrawals came when their text had reached the provider less than a second before."""
        first = {number: at for at, number in reversed(self.texts())}
        return sum(0 < answered - first.get(number, answered) < 1.5 for number, answered in self.answered.items())

    def twice(self) -> list[str]:
        return [number for number, times in Counter(number for _, number in self.texts()).items() if times > 1]


class Worker:
    def __init__(self, database_url: str, twilio_url: str, public_url: str) -> None:
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")},
            "DATABASE_URL": database_url,
            "REGULARS_SECRET_KEY": KEY,
            "REGULARS_TWILIO_URL": twilio_url,
            "REGULARS_PUBLIC_URL": public_url,
        }
        self._process: Child | None = None

    def start(self) -> None:
        """What the last one held is due at once."""
        expire_claims(self._environment["DATABASE_URL"])
        self._process = fork_server().start(
            "tests.support.cli", "worker", environment=self._environment, log=Path(os.devnull)
        )

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(END_SECONDS_MAX)
            self._process.close()
            self._process = None


def play(server: Server, database_url: str, tenant: Tenant, *, texts: int, each: int, kills: int, seed: int) -> Report:
    """`each` STOPs, opt-outs and erasures inside one send of `texts`, while the sender is killed `kills` times."""
    return asyncio.run(_play(server, database_url, tenant, texts=texts, each=each, kills=kills, seed=seed))


async def _play(
    server: Server, database_url: str, tenant: Tenant, *, texts: int, each: int, kills: int, seed: int
) -> Report:
    chance = random.Random(seed)
    numbers = [f"+336{number:08d}" for number in range(10_000_000, 10_000_000 + texts)]
    database = Database(database_url, pool_max=4)
    await database.open()
    try:
        async with fake_twilio() as fake:
            report = _watch(fake)
            texting = await open_twilio_shop(database, tenant, numbers)
            await _request(database, tenant, numbers, texting)
            worker = Worker(database_url, fake.url, server.url)
            worker.start()
            try:
                chosen = chance.sample(numbers, 3 * each)
                fake.stalls_s = PROVIDER_S
                async with asyncio.TaskGroup() as group:
                    group.create_task(_withdraw_all(server, tenant, texting, chosen, report=report, chance=chance))
                    group.create_task(_kill(worker, kills, chance, report))
                await until(lambda: _is_quiet(database, tenant), seconds=QUIET_S_MAX, every_s=0.1)
            finally:
                worker.end(signal.SIGTERM)
            report.states = await _states(database, tenant)
    finally:
        await database.close()
    return report


def _watch(fake: FakeTwilio) -> Report:
    report = Report()

    def note(form: dict[str, str]) -> None:
        report.arrived.append((time.monotonic(), form["To"], form["Body"]))

    fake.respond = note
    return report


async def open_twilio_shop(database: Database, tenant: Tenant, numbers: list[str]) -> Texting:
    """Texts leave through Twilio at any hour, and each number has a customer who consented."""
    settings = SmsSettings(
        brand="Shop",
        rules={"FR": ALWAYS},
        caps=(),
        notices={"FR": OptOutNotice("STOP 36111", "36111")},
        twilio=TwilioAccount(ACCOUNT, "Shop"),
    )
    organization_id = tenant.organization_id
    async with database.transaction() as tx:
        found = await load_texting(tx, organization_id)
        assert found is not None
        sealed = seal_token(Vault(KEY), organization_id, TOKEN)
        texting = replace(found, provider="twilio", settings=settings, encrypted_token=sealed)
        await save_texting(tx, organization_id, texting)
    for start in range(0, len(numbers), CHUNK):
        async with database.transaction() as tx:
            some = numbers[start : start + CHUNK]
            await upsert_profiles(tx, organization_id, [ProfileUpsert(external_id=f"C{it}") for it in some])
            consents = [
                Consent(
                    phone_number=it,
                    source="OTHER",
                    consented_at=tx.now,
                    origin=ORIGIN,
                    profile=ByExternalId(f"C{it}"),
                )
                for it in some
            ]
            await opt_in(tx, organization_id, consents, secret=texting.secret)
    return texting


async def _request(database: Database, tenant: Tenant, numbers: list[str], texting: Texting) -> None:
    for start in range(0, len(numbers), CHUNK):
        async with database.transaction() as tx:
            orders = [
                TextOrder(
                    origin_kind=OriginKind.CAMPAIGN, origin_id=new_uuid(), step="1", rendered="Soldes", phone_number=it
                )
                for it in numbers[start : start + CHUNK]
            ]
            await request_texts(tx, tenant.organization_id, orders, texting=texting)


async def _withdraw_all(
    server: Server, tenant: Tenant, texting: Texting, chosen: list[str], *, report: Report, chance: random.Random
) -> None:
    headers = {"x-api-key": tenant.key}
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(server.url, headers=headers, timeout=timeout) as session:
        await until(lambda: report.arrived)

        async def withdraw(number: str, kind: str, *, after_s: float) -> None:
            await asyncio.sleep(after_s)
            await _withdraw(session, texting, number, kind, report, public_url=server.url)

        async with asyncio.TaskGroup() as group:
            for position, number in enumerate(chosen):
                kind = ("stop", "opt-out", "erasure")[position % 3]
                after_s = chance.uniform(0, WITHDRAW_FOR_S)
                group.create_task(withdraw(number, kind, after_s=after_s))


async def _withdraw(
    session: aiohttp.ClientSession, texting: Texting, number: str, kind: str, report: Report, *, public_url: str
) -> None:
    """Until it is answered with success: what was answered otherwise may not have happened."""
    report.kinds[number] = kind
    for attempt in range(20):
        status = await _ask(session, texting, number, kind, attempt=attempt, public_url=public_url)
        if status < 300:
            report.answered[number] = time.monotonic()
            return
        await asyncio.sleep(0.5)
    raise AssertionError(f"{kind} of {number} was never answered")


async def _ask(
    session: aiohttp.ClientSession, texting: Texting, number: str, kind: str, *, attempt: int, public_url: str
) -> int:
    given: dict[str, Any] = {}
    if kind == "stop":
        url = inbound_url(public_url, texting)
        form = {"From": number, "Body": "STOP", "MessageSid": f"SM{number}"}
        path = url.removeprefix(public_url)
        request = session.post(path, data=form, headers={"X-Twilio-Signature": sign(TOKEN, url, form)})
    elif kind == "opt-out":
        given = {"phone_number": number}
        request = session.post("/v1/subscriptions/opt-out", json=given)
    else:
        request = session.delete(f"/v1/profiles/C%2B{number[1:]}")
    async with request as response:
        await response.read()
        # An erasure that was answered with an error may have happened all the same: then no customer is left.
        return 204 if kind == "erasure" and attempt and response.status == 404 else response.status


async def _kill(worker: Worker, kills: int, chance: random.Random, report: Report) -> None:
    """Each time when it has sent some, so that some are on their way."""
    for _ in range(kills):
        enough = len(report.arrived) + SENT_BETWEEN_KILLS
        await until(lambda: len(report.arrived) >= enough, seconds=QUIET_S_MAX)  # noqa: B023  # at once
        await asyncio.sleep(chance.uniform(0, PROVIDER_S))
        await asyncio.to_thread(worker.end)
        worker.start()


async def _is_quiet(database: Database, tenant: Tenant) -> bool:
    states = await _states(database, tenant)
    return not states["queued"] and not states["sending"]


async def _states(database: Database, tenant: Tenant) -> Counter[str]:
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT state, count(*) FROM texts WHERE organization_id = %s GROUP BY state", (tenant.organization_id,)
        )
    return Counter({row[0]: row[1] for row in rows})
