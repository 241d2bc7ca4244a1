"""Runs a large campaign while it kills worker, servers, analysis process and PostgreSQL repeatedly."""

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import psycopg
from tests.crash.attribution import check_draw, check_lift
from tests.crash.campaigns import check_campaign
from tests.crash.external import organization_name
from tests.crash.failpoints import BY_NAME
from tests.crash.faults import POSTGRESQL, RANDOM_KILLS, Fault, Scene, choose, wait_until_hit
from tests.crash.journal import Journal
from tests.crash.marketers import Marketer, end_marketers
from tests.crash.shops import Shop, open_shops
from tests.crash.world import Cluster, World, wait_until, world
from tests.support.desk import ORIGIN
from tests.support.run_async import run_async

from regulars.consent.opt_in import Consent, opt_in
from regulars.kit.db import Database
from regulars.kit.ids import TEXT, ByExternalId
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles

RECIPIENTS: Final = 20_000
CHUNK: Final = 500
ENDS_WITHIN_S: Final = 1_200.0
BETWEEN_S: Final = (0.5, 4.0)
FAILPOINTS: Final = ("campaign.fed", "campaign.ended", "text.claimed", "text.sent")
# Includes the build of the columns, and the two minutes until the claim of a killed worker expires.
PREPARES_WITHIN_S: Final = 240.0
COMPUTES_WITHIN_S: Final = 240.0
QUEUED: Final = "SELECT count(*) FROM outbox WHERE organization_id = %s"


def campaign_under_kills(place: Cluster, servers: int, say: Callable[[str], None]) -> dict[str, Any]:
    chance = random.Random(30)
    with world(place, servers=servers) as running:
        tag = f"{chance.getrandbits(36):09x}"
        [shop] = open_shops(running.url, [tag], hooks_url=running.external.hooks_url, public_url=running.public_url)
        _join(running.url, shop)
        say(f"{RECIPIENTS:,} customers have consented")
        running.start_analysis()
        marketer = Marketer(running, shop, seed=30, rates=[None])
        journal = Journal(running.folder / "campaign.jsonl")
        scene = Scene(running, [shop], journal, chance, [marketer])
        started = time.monotonic()
        violations: list[str] = []
        try:
            _draw_under_kills(scene, say)
            marketer.start()
            _kill_until_ended(scene, say)
            end_marketers([marketer])
            _wait_until_idle(running, shop)
            _measure_under_kills(scene, say)
            arrivals = running.external.arrivals(organization_name(shop.organization_id))
            outcomes = check_campaign(running.url, shop, marketer.campaign, arrivals)
        except AssertionError as error:
            violations.append(str(error))
            outcomes, arrivals = {}, []
        journal.close()
        # Customers who consented also got the welcome text of a journey.
        ids = running.rows(
            "SELECT id FROM texts WHERE organization_id = %s AND origin_kind = 'campaign'", shop.organization_id
        )
        texts = {TEXT.encode(row[0]) for row in ids}
        taken = Counter(it.number for it in arrivals if it.is_taken and it.text_id in texts)
        return {
            "recipients": sum(outcomes.values()),
            "outcomes": outcomes,
            "numbers_texted": len(taken),
            "doubled": sum(times > 1 for times in taken.values()),
            "pauses": len(marketer.campaign.pauses),
            "sums_seen": marketer.campaign.looks,
            "kills": dict(running.kills),
            "seconds": round(time.monotonic() - started),
            "violations": violations,
        }


def _draw_under_kills(scene: Scene, say: Callable[[str], None]) -> None:
    """Draws the global holdout, which the campaign excludes, and kills the worker at the second of four pages."""
    organization_id = scene.shops[0].organization_id
    _kill_at(scene, "holdout.drawn", passes=1)

    def is_drawn() -> bool:
        rows = scene.world.rows("SELECT drawn_at FROM holdout_quarters WHERE organization_id = %s", organization_id)
        return bool(rows) and rows[0][0] is not None

    wait_until(is_drawn, seconds=COMPUTES_WITHIN_S, what="the global holdout is not drawn", every_s=0.25)
    say(f"{check_draw(scene.world.url, scene.shops[0])} held out by the quarter, after a kill of the draw")


def _measure_under_kills(scene: Scene, say: Callable[[str], None]) -> None:
    """Computes the lift of the campaign, as if its window had closed."""
    organization_id = scene.shops[0].organization_id
    _kill_at(scene, "lift.computed")

    def is_computed() -> bool:
        rows = scene.world.rows("SELECT result FROM lifts WHERE organization_id = %s", organization_id)
        return all(row[0] is not None for row in rows)

    wait_until(is_computed, seconds=COMPUTES_WITHIN_S, what="the lift is not computed", every_s=0.25)
    check_lift(scene.world.url, scene.shops[0])
    say("the lift is computed, after a kill")


def _kill_at(scene: Scene, place: str, *, passes: int = 0) -> None:
    worker = scene.world.worker
    worker.arm(place, "kill", passes=passes)
    if BY_NAME[place].provoked_by:
        scene.world.execute(BY_NAME[place].provoked_by, [shop.organization_id for shop in scene.shops])
    assert wait_until_hit(scene, worker, place, "kill", seconds=PREPARES_WITHIN_S), f"STUCK: {place} was not reached"
    scene.world.repair()


def _kill_until_ended(scene: Scene, say: Callable[[str], None]) -> None:
    traps = [fault for name in FAILPOINTS for fault in choose(name) if fault.name.endswith(":kill")]
    deck: list[Fault] = [*RANDOM_KILLS, *RANDOM_KILLS, *POSTGRESQL, *traps]
    # Random kills may miss the short time in which the audience is frozen and prepared.
    for place in ("campaign.frozen", "campaign.prepared"):
        _kill_at(scene, place)
        say(f"{_look(scene)[0]}: killed at {place}")
    until = time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < until:
        state, outcomes = _look(scene)
        if state in {"ended", "cancelled"}:
            return
        fault = scene.chance.choice(deck)
        fault.act(scene)
        scene.world.repair()
        say(f"{state}, {outcomes}: {fault.name}")
        time.sleep(scene.chance.uniform(*BETWEEN_S))
    raise AssertionError(f"STUCK: the campaign has not ended within {ENDS_WITHIN_S:.0f} s")


def _look(scene: Scene) -> tuple[str, dict[str, int]]:
    organization_id = scene.shops[0].organization_id
    [(state,)] = scene.world.rows("SELECT state FROM campaigns WHERE organization_id = %s", organization_id)
    rows = scene.world.rows(
        "SELECT outcome, sum(recipients)::integer FROM campaign_totals WHERE organization_id = %s AND arm >= 0"
        " AND recipients > 0 GROUP BY outcome",
        organization_id,
    )
    return state, dict(rows)


def _wait_until_idle(running: World, shop: Shop) -> None:
    def is_quiet() -> bool:
        running.pass_time([shop.organization_id])
        try:
            [(waiting,)] = running.rows(QUEUED, shop.organization_id)
        except psycopg.OperationalError:
            return False
        return not waiting

    wait_until(is_quiet, seconds=120, what="the worker does not come to rest", every_s=0.25)


def _join(url: str, shop: Shop) -> None:
    async def work() -> None:
        database = Database(url, pool_max=2)
        await database.open()
        try:
            for start in range(0, RECIPIENTS, CHUNK):
                names = {f"{shop.tag}-many-{number}": f"+337{number:08d}" for number in range(start, start + CHUNK)}
                async with database.transaction() as tx:
                    people = [ProfileUpsert(external_id=name) for name in names]
                    await upsert_profiles(tx, shop.organization_id, people)
                    consents = [
                        Consent(
                            phone_number=number,
                            source="OTHER",
                            consented_at=tx.now,
                            origin=ORIGIN,
                            profile=ByExternalId(name),
                        )
                        for name, number in names.items()
                    ]
                    await opt_in(tx, shop.organization_id, consents, secret=shop.texting.secret)
        finally:
            await database.close()

    run_async(work())
