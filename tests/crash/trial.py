"""Runs one trial: creates shops, runs tills, injects a fault, repairs it, waits until no work is left, and checks the history."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from tests.crash import checker, effects
from tests.crash.attribution import check_credits
from tests.crash.campaigns import check_audience, check_campaign
from tests.crash.clients import SALES, STORE, Address, Caller, Till, repeat_undecided, running_tills
from tests.crash.erased_customers import ErasedCustomers, check_gone, check_logged, is_of_erased_customer
from tests.crash.external import organization_name
from tests.crash.faults import Fault, Scene
from tests.crash.journal import Call, Journal
from tests.crash.list_reader import ListReader
from tests.crash.marketers import Marketer, end_marketers
from tests.crash.processes import ServerProcess
from tests.crash.shops import Shop, open_shops
from tests.crash.world import World, wait_until
from tests.support import samples

TILLS: Final = (3, 2)
BEFORE_S: Final = 0.5
AFTER_S: Final = 0.5
# For an idle machine; `patience` is the factor for others.
ANSWERS_WITHIN_S: Final = 10.0
RECOVERS_WITHIN_S: Final = 10.0
DATABASE_BACK_WITHIN_S: Final = 5.0
QUIET_WITHIN_S: Final = 60.0
ALLOWED: Final = {200, 201, 204, 400, 404, 409, 503}
# Rows that wait for the worker or are claimed by it. The end of a text makes its waiting run due.
WAITING: Final = """
SELECT (SELECT count(*) FROM outbox WHERE organization_id = ANY(shops.ids)),
    (SELECT count(*) FROM outbox_retries WHERE organization_id = ANY(shops.ids)),
    (SELECT count(*) FROM texts WHERE organization_id = ANY(shops.ids) AND state IN ('queued', 'sending')),
    (SELECT count(*) FROM journey_runs WHERE organization_id = ANY(shops.ids) AND state <> 'ended'),
    (SELECT count(*) FROM webhook_deliveries WHERE organization_id = ANY(shops.ids) AND state = 'pending'),
    (SELECT count(*) FROM campaigns WHERE organization_id = ANY(shops.ids)
        AND (state NOT IN ('ended', 'cancelled') OR due_at <= now())),
    (SELECT count(*) FROM attribution_customers WHERE organization_id = ANY(shops.ids)),
    (SELECT count(*) FROM segment_columns WHERE organization_id = ANY(shops.ids) AND erased_since IS NOT NULL)
FROM (SELECT %s::uuid[] AS ids) AS shops
"""


@dataclass
class Result:
    seed: int
    fault: str
    servers: int
    # The reason why the trial could not run.
    skipped: str = ""
    happened: bool = False
    seconds: float = 0.0
    recovery_s: float = 0.0
    quiet_s: float = 0.0
    calls: int = 0
    lost: int = 0
    walks: int = 0
    erased: int = 0
    texts: int = 0
    events: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    history: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def run_trial(
    world: World,
    fault: Fault,
    *,
    seed: int,
    folder: Path,
    keep: bool = False,
    skipped: str = "",
    patience: float = 1.0,
    pause_s: float = 0.0,
) -> Result:
    """Runs a trial; a skipped one only returns its result. Each till pauses so long between its calls."""
    result = Result(seed, fault.name, len(world.servers), skipped=skipped)
    if skipped:
        return result
    started = time.monotonic()
    journal = Journal(folder / f"history-{seed}-{fault.name.replace(':', '-')}.jsonl")
    journal.note(seed=seed, fault=fault.name, servers=result.servers)
    try:
        with _recording_violations(result, journal):
            _run(world, fault, result, journal, patience=patience, pause_s=pause_s)
    finally:
        journal.close()
    statuses = Counter(str(answer.status) for answer in journal.answers)
    result.answers = dict(sorted(statuses.items()))
    result.calls, result.lost = len(journal.answers) + journal.lost_calls, journal.lost_calls
    result.seconds = round(time.monotonic() - started, 1)
    if result.violations or keep:
        result.history = str(journal.file)
    else:
        journal.file.unlink()
    return result


@contextmanager
def _recording_violations(result: Result, journal: Journal) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        result.violations.append(str(error)[:2000])
        journal.note(violation=str(error))


def _run(world: World, fault: Fault, result: Result, journal: Journal, *, patience: float, pause_s: float) -> None:
    chance = random.Random(f"{result.seed}/{fault.name}")
    world.external.forget()
    shops = _open_shops(world, chance)
    world.start_analysis()
    marketers = [Marketer(world, shop, seed=result.seed) for shop in shops]
    scene = Scene(world, shops, journal, chance, marketers, patience=patience)
    # Some use the shared port, others the port of one process, so that every process gets work.
    ways = [world.address, *(Address(server.address) for server in world.servers)]
    tills = [
        Till(
            number,
            seed=result.seed,
            server=ways[number % len(ways)],
            api_key=shop.key,
            journal=journal,
            shop=shop,
            manner=fault.manner,
            pause_s=pause_s,
        )
        for shop, count in zip(shops, TILLS, strict=True)
        for number in range(count)
    ]
    list_reader = ListReader(world.address, shops[0], journal)
    erasing = [ErasedCustomers(world.address, shop, journal) for shop in shops]
    ledgers: dict[str, effects.Ledger] = {}
    journal.note(phase="selling")
    with running_tills(tills):
        for client in (list_reader, *erasing, *marketers):
            client.start()
        time.sleep(BEFORE_S)
        ledgers = _ledgers(world, shops)
        with _recording_violations(result, journal):
            result.happened = fault.act(scene)
        journal.note(phase="healing", happened=result.happened)
        with _recording_violations(result, journal):
            world.repair()
            journal.note(phase="healed")
            within_s = DATABASE_BACK_WITHIN_S if fault.takes_database else RECOVERS_WITHIN_S
            result.recovery_s = _recover(world, shops, journal, within_s=within_s * patience)
        time.sleep(AFTER_S)
        journal.note(phase="closing")
    for client in (list_reader, *erasing):
        client.stop.set()
    for client in (list_reader, *erasing):
        client.join(60)
    end_marketers(marketers)
    result.walks, result.erased = list_reader.walks, sum(len(it.gone) for it in erasing)
    result.violations += list_reader.faults
    for shop in shops:
        mine = journal.of(shop.tag)
        repeat_undecided(server=world.address, api_key=shop.key, journal=journal, calls=mine.undecided)
    journal.note(phase="settled")
    _probe(world, shops, journal, within_s=ANSWERS_WITHIN_S * patience)
    result.quiet_s = _wait_until_idle(scene, within_s=QUIET_WITHIN_S * patience)
    journal.note(phase="at rest")
    _check(scene, result, ledgers, erasing)
    journal.note(phase="judged")


def _open_shops(world: World, chance: random.Random) -> list[Shop]:
    tags = [f"{chance.getrandbits(36):09x}" for _ in TILLS]
    opened: list[Shop] = []

    def is_open() -> bool:
        try:
            opened.extend(open_shops(world.url, tags, hooks_url=world.external.hooks_url, public_url=world.public_url))
        except psycopg.OperationalError:
            return False
        return True

    wait_until(is_open, seconds=30, what="shops could not be opened")
    return opened


def _ledgers(world: World, shops: list[Shop]) -> dict[str, effects.Ledger]:
    with psycopg.connect(world.url) as connection:
        return {shop.tag: effects.read_ledger(connection, shop.organization_id) for shop in shops}


def _ticket(shop: Shop) -> Call:
    sale = samples.sale(STORE, external_id=samples.unique(f"{shop.tag}-probe"))
    return Call(SALES, samples.json_bytes(sale).decode(), None, str(sale["external_id"]), tag=shop.tag)


def _sell(server: ServerProcess, shop: Shop, journal: Journal) -> bool:
    caller = Caller(Address(server.address), shop.key, journal)
    try:
        return caller.send(_ticket(shop))
    finally:
        caller.close()


def _each(world: World, shops: list[Shop], act: Callable[[ServerProcess, Shop], Any]) -> list[Any]:
    """Calls the function for each shop and process, all at once."""
    pairs = [(server, shop) for server in world.servers for shop in shops]
    with ThreadPoolExecutor(len(pairs)) as pool:
        return list(pool.map(lambda pair: act(*pair), pairs))


def _recover(world: World, shops: list[Shop], journal: Journal, *, within_s: float) -> float:
    """Seconds from the repair until every process accepted a write of every organization."""

    def recovered(server: ServerProcess, shop: Shop) -> float:
        return wait_until(
            lambda: _sell(server, shop, journal),
            seconds=within_s,
            what=f"{server.name} does not take a write of {shop.tag}",
        )

    return round(max(_each(world, shops, recovered)), 2)


def _probe(world: World, shops: list[Shop], journal: Journal, *, within_s: float) -> None:
    """Asserts that, after the repair, every process accepts a write of every organization in time."""

    def probe(server: ServerProcess, shop: Shop) -> tuple[bool, float]:
        started = time.monotonic()
        return _sell(server, shop, journal), time.monotonic() - started

    for is_sold, seconds in _each(world, shops, probe):
        assert is_sold, "STUCK: a write is refused after everything was healed"
        assert seconds < within_s, f"STUCK: a write took {seconds:.1f} s after everything was healed"


def _wait_until_idle(scene: Scene, *, within_s: float) -> float:
    """Waits until no row waits for the worker; scheduled waits are skipped."""
    organization_ids = [shop.organization_id for shop in scene.shops]
    seen: list[Any] = []

    def is_quiet() -> bool:
        scene.world.pass_time(organization_ids)
        seen[:] = scene.world.rows(WAITING, organization_ids)
        return not any(seen[0])

    try:
        took_s = wait_until(is_quiet, seconds=within_s, what="the worker does not come to rest", every_s=0.25)
    except AssertionError as error:
        names = ("facts", "retries", "texts", "runs", "deliveries", "campaigns", "attributions", "purges")
        raise AssertionError(f"{error}: {dict(zip(names, seen[0], strict=True))} wait") from None
    for what, holds in scene.awaited:
        wait_until(holds, seconds=within_s, what=f"not true that {what}", every_s=0.25)
    return round(took_s, 2)


def _check(scene: Scene, result: Result, ledgers: dict[str, effects.Ledger], erasing: list[ErasedCustomers]) -> None:
    world, shops = scene.world, list(scene.shops)
    for shop, leaving, marketer in zip(shops, erasing, scene.marketers, strict=True):
        campaign = marketer.campaign
        mine = scene.journal.of(shop.tag)
        held = checker.read(world.url, shop.organization_id)
        followed = effects.read_worker_rows(world.url, shop.organization_id)
        all_arrivals = world.external.arrivals(organization_name(shop.organization_id))
        arrivals = [it for it in all_arrivals if not is_of_erased_customer(shop, it.number)]
        received = world.external.received(shop.tag)
        result.texts += len(all_arrivals)
        result.events += len(received)
        others = [it for it in shops if it is not shop]
        checks: list[Callable[[], None]] = [
            *(lambda holds=holds, held=held, mine=mine: holds(held, mine) for holds in checker.INVARIANTS),  # type: ignore[misc]  # bound now
            lambda f=followed, a=arrivals, m=mine: effects.check_journeys(f, a, m),  # type: ignore[misc]  # bound now
            lambda f=followed, m=mine: effects.check_time(f, m),  # type: ignore[misc]  # bound now
            lambda s=shop, f=followed, a=arrivals, m=mine: effects.check_consent(s, f, a, m),  # type: ignore[misc]  # bound now
            lambda s=shop, f=followed: effects.check_ledger(world.url, s, ledgers[s.tag], f),  # type: ignore[misc]  # bound now
            lambda s=shop, f=followed, r=received, m=mine: effects.check_webhooks(s, f, r, m),  # type: ignore[misc]  # bound now
            lambda s=shop, g=leaving.gone, a=all_arrivals: check_gone(world.url, s, g, a),  # type: ignore[misc]  # bound now
            lambda s=shop, c=campaign, a=all_arrivals: check_campaign(world.url, s, c, a),  # type: ignore[misc]  # bound now
            lambda s=shop, c=campaign, m=mine: check_audience(world.url, s, c, m),  # type: ignore[misc]  # bound now
            lambda s=shop: check_credits(world.url, s),  # type: ignore[misc]  # bound now
            lambda s=shop: check_logged(world.url, s, world.folder),  # type: ignore[misc]  # bound now
            lambda s=shop, o=others, m=mine, r=received: effects.check_tenants(s, o, m, r),  # type: ignore[misc]  # bound now
        ]
        for check in checks:
            with _recording_violations(result, scene.journal):
                check()
    with _recording_violations(result, scene.journal):
        effects.check_answers(scene.journal, allowed=ALLOWED)
    with _recording_violations(result, scene.journal):
        effects.check_logs(world.logs(), shops, may_have_tracebacks=scene.may_have_tracebacks)
    with _recording_violations(result, scene.journal):
        effects.check_bounds(world)
