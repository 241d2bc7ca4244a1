"""A backtest is held against live runs: random definitions, the same facts, and the same entries, texts and ends.

The clock is the test's: it stops at every moment at which anything becomes due, and all queues have their turns then.
Afterwards the attributes are put back, because a backtest begins with those of today, and each journey is played.
"""

import asyncio
import json
import os
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.journeys.clock import HeldDatabase, HeldTime
from tests.journeys.desk import LISTENERS
from tests.segments.desk import Desk

from regulars.catalog.model import AttributeType
from regulars.journeys.backtest.run import backtest
from regulars.kit import ids
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.texts.settings.model import OpenHours, SendHoursRule, SmsSettings

EXAMPLES = int(os.environ.get("REGULARS_TEST_EXAMPLES", "2"))
JOURNEYS = 6
DAYS = 8
NUMBERS = {"C1": "+33612345601", "C2": "+33612345602"}
# Texts wait for the morning, and for Sunday: some are withdrawn, and some runs leave meanwhile.
MORNINGS = SendHoursRule(days=(OpenHours(480, 720),) * 4 + (None, None) + (OpenHours(0, 1440),), on_holidays=True)
TURNS_MAX = 200
KEYS = ("a", "b", "n")
VALUES = ("1", "2", "x")


class Fact(NamedTuple):
    """What happened so many minutes after the beginning."""

    minute: int
    kind: str
    customer: str
    days_ago: int = 0


def shaped(**members: Any) -> st.SearchStrategy[dict[str, Any]]:
    given = {key: it if isinstance(it, st.SearchStrategy) else st.just(it) for key, it in members.items()}
    return st.fixed_dictionaries({key.rstrip("_"): it for key, it in given.items()})


# `n` is a number, which not every value is. Keys, and the segment that asks about `a`, are those of each journey.
LEAVES = st.one_of(
    shaped(
        type="attribute",
        key=st.sampled_from(KEYS),
        comparison=st.sampled_from(("is", "is_not")),
        value=st.sampled_from(("1", "2")),
    ),
    shaped(type="attribute", key=st.sampled_from(KEYS), comparison="is_set"),
    shaped(type="subscribed", is_=st.booleans()),
    shaped(type="purchases", in_days=st.integers(1, 5), at_least=st.integers(0, 3)),
    shaped(type="segment", id="s", is_=st.booleans()),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: shaped(type=st.sampled_from(("all", "any", "none")), of=st.lists(inner, min_size=1, max_size=3)),
    max_leaves=4,
)
PLAIN_STEPS = st.one_of(
    shaped(do="wait", hours=st.integers(1, 60)),
    shaped(do="wait_until", time=st.sampled_from(("07:30", "10:00", "23:00"))),
    shaped(do="send_text", text=st.sampled_from(("Hello", "{{ profile.attributes.a }}", "{{ profile.attributes.b }}"))),
    shaped(do="set_attribute", key=st.sampled_from(KEYS), value=st.sampled_from(VALUES)),
)


def forks(steps: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    ways = {"then": st.lists(steps, min_size=1, max_size=3), "else": st.lists(steps, max_size=2)}
    return st.one_of(
        shaped(do="branch", if_=CONDITIONS, **ways),
        shaped(do="split", percent=st.integers(1, 99), **ways),
        shaped(do="wait_for_purchase", hours=st.integers(1, 72), **ways),
    )


STEPS = st.recursive(PLAIN_STEPS, forks, max_leaves=5)
REENTRIES = st.sampled_from(({"policy": "always"}, {"policy": "never"}, {"policy": "after_days", "days": 2}))
DEFINITIONS = shaped(
    trigger=st.sampled_from(("purchase", "purchase", "return", "opt_in")),
    filter=st.none() | CONDITIONS,
    reentry=REENTRIES,
    exit_on=st.lists(st.sampled_from(("purchase", "return")), unique=True, max_size=2),
    steps=st.lists(STEPS, min_size=1, max_size=5),
)
FACTS = st.lists(
    st.builds(
        Fact,
        minute=st.integers(1, (DAYS - 1) * 24 * 60),
        kind=st.sampled_from(("PURCHASE", "PURCHASE", "RETURN", "in", "out")),
        customer=st.sampled_from(sorted(NUMBERS)),
        days_ago=st.sampled_from((0, 0, 0, 3, 8)),
    ),
    min_size=6,
    max_size=14,
    unique_by=lambda fact: fact.minute,
)
ATTRIBUTES = st.fixed_dictionaries({}, optional={key: st.sampled_from(VALUES) for key in KEYS})


def of_journey(piece: Any, number: int, segment: str) -> Any:
    """The same piece with keys and a segment that only this journey uses."""
    if isinstance(piece, list):
        return [of_journey(it, number, segment) for it in piece]
    if not isinstance(piece, dict):
        return piece
    changed = {key: of_journey(it, number, segment) for key, it in piece.items()}
    if "key" in changed:
        changed["key"] += str(number)
    if changed.get("type") == "segment":
        changed["id"] = segment
    if "text" in changed:
        changed["text"] = changed["text"].replace(" }}", f"{number} }}}}")
    return changed


class World:
    def __init__(self, runner: asyncio.Runner, database: HeldDatabase) -> None:
        self.database = database
        self.desk = Desk(runner, database)
        self.desk.settings(SmsSettings(brand="Shop", rules={"FR": MORNINGS}, caps=()))
        self.customers: dict[str, UUID] = {}

    def prepare(self, attributes: dict[str, dict[str, str]]) -> None:
        every = {f"{key}{number}" for key in KEYS for number in range(JOURNEYS)}
        self.desk.customer("C0", **dict.fromkeys(every, "1"))
        for number in range(JOURNEYS):
            self.desk.declare(f"a{number}", AttributeType.TEXT)
            self.desk.declare(f"b{number}", AttributeType.TEXT)
        for name, values in attributes.items():
            given = {f"{key}{number}": it for key, it in values.items() for number in range(JOURNEYS)}
            self.customers[name] = self.desk.customer(name, **given)
            # A backtest knows the links of numbers as they are today, so there is one from the beginning.
            self.desk.opt_in(name, NUMBERS[name])
            self.desk.opt_out(NUMBERS[name])

    def make(self, number: int, definition: dict[str, Any]) -> UUID:
        segment = self.desk.segment({"type": "attribute", "key": f"a{number}", "comparison": "is", "value": "1"})
        own = of_journey(definition, number, SEGMENT.encode(segment))
        steps = own.pop("steps")
        return self.desk.journey(*steps, **{key: it for key, it in own.items() if it is not None})

    def live_through(self, facts: list[Fact], *, begin: datetime, end: datetime) -> None:
        coming = sorted(facts)
        while True:
            moments = [begin + timedelta(minutes=coming[0].minute)] if coming else []
            moments += [due for due in (self._next_due(),) if due is not None]
            if not moments or min(moments) > end:
                break
            self.database.now = max(self.database.now, min(moments))
            if coming and begin + timedelta(minutes=coming[0].minute) <= self.database.now:
                self._happen(coming.pop(0))
            self._work()
        self.database.now = end

    def _happen(self, fact: Fact) -> None:
        if fact.kind == "in":
            self.desk.opt_in(fact.customer, NUMBERS[fact.customer])
        elif fact.kind == "out":
            self.desk.opt_out(NUMBERS[fact.customer])
        else:
            ago = timedelta(days=fact.days_ago)
            self.desk.sale(self.customers[fact.customer], kind=fact.kind, ago=ago)

    def _next_due(self) -> datetime | None:
        [(due,)] = self.desk.sql(
            "SELECT least((SELECT min(due_at) FROM journey_runs WHERE organization_id = it.id),"
            " (SELECT min(due_at) FROM texts WHERE organization_id = it.id)) FROM (SELECT %s::uuid AS id) AS it"
        )
        return due

    def _work(self) -> None:
        """Turns of the queues that have something due, until none has."""
        queues = (self.desk.outbox, self.desk.runs_queue, self.desk.texts_queue)

        async def turn(queue: Any) -> None:
            await queue.run_pass(self.database, self.desk.organization_id)
            await queue.finish()

        for _ in range(TURNS_MAX):
            [due] = self.desk.sql(
                "WITH it AS (SELECT %s::uuid AS id, %s::timestamptz AS now)"
                " SELECT EXISTS (SELECT 1 FROM outbox WHERE organization_id = it.id AND due_at <= it.now"
                "     AND topic = ANY (%s)),"
                " EXISTS (SELECT 1 FROM journey_runs WHERE organization_id = it.id AND due_at <= it.now),"
                " EXISTS (SELECT 1 FROM texts WHERE organization_id = it.id AND due_at <= it.now) FROM it",
                self.database.now,
                [kind.topic for kind in LISTENERS],
            )
            if not any(due):
                return
            for queue, is_due in zip(queues, due, strict=True):
                if is_due:
                    self.desk.runner.run(turn(queue))
                    break
        pytest.fail(f"Something stays due: {due}")

    def lived(self, journey: UUID, zone: ZoneInfo) -> dict[str, Any]:
        """What the journey did, as a report of a backtest tells it."""
        runs = self.desk.runs(journey)
        texts = self.desk.sql(
            "SELECT text.state, text.reason, COALESCE(text.claimed_at, text.ended_at) FROM texts AS text"
            " JOIN journey_runs AS run ON run.organization_id = text.organization_id AND run.id = text.origin_id"
            " WHERE text.organization_id = %s AND run.journey_id = %s AND text.ended_at IS NOT NULL",
            journey,
        )

        def day(moment: datetime) -> str:
            return moment.astimezone(zone).date().isoformat()

        return {
            "entries": Counter(day(run.entered_at) for run in runs),
            "texts": Counter(day(at) for state, _, at in texts if state == "sent"),
            "skipped": Counter((day(at), reason) for state, reason, at in texts if state == "skipped"),
            "outcomes": Counter(run.outcome for run in runs if run.outcome is not None),
            "still_waiting": sum(run.state == "active" for run in runs),
        }

    def played(self, journey: UUID) -> tuple[dict[str, Any], ZoneInfo]:
        texting = self.desk.texting
        report = self.desk.do(
            lambda tx: backtest(tx, self.desk.organization_id, journey, texting=texting, days=DAYS + 1)
        )
        days = {day.isoformat(): it for day, it in report.by_day.items()}
        totals = {
            "entries": Counter({day: it.entries for day, it in days.items() if it.entries}),
            "texts": Counter({day: it.texts for day, it in days.items() if it.texts}),
            "skipped": Counter({(day, why): many for day, it in days.items() for why, many in it.skipped.items()}),
            "outcomes": report.outcomes,
            "still_waiting": report.still_waiting,
        }
        return totals, ZoneInfo(report.zone)


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as running:
        yield running


@pytest.mark.timeout(900)
def test_a_backtest_says_what_live_runs_did(api_database_url, runner):
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        # An example that fails says its journey; making it smaller would take minutes.
        phases=(Phase.generate,),
    )
    @given(
        definitions=st.lists(DEFINITIONS, min_size=JOURNEYS, max_size=JOURNEYS),
        facts=FACTS,
        attributes=st.fixed_dictionaries(dict.fromkeys(sorted(NUMBERS), ATTRIBUTES)),
    )
    def agree(definitions: list[dict[str, Any]], facts: list[Fact], attributes: dict[str, dict[str, str]]) -> None:
        database = HeldDatabase(api_database_url, pool_max=4, lock_timeout_ms=20_000)
        begin = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        # Before the days that are played.
        database.now = begin - timedelta(days=3)
        runner.run(database.open())
        # An id begins with the time of its sale.
        ids.time = HeldTime(database)  # type: ignore[assignment]  # it is asked for this alone
        try:
            world = World(runner, database)
            world.prepare(attributes)
            database.now = begin
            journeys = [world.make(number, it) for number, it in enumerate(definitions)]
            before = world.desk.sql("SELECT id, attributes FROM profiles WHERE organization_id = %s")
            world.live_through(facts, begin=begin, end=begin + timedelta(days=DAYS))
            for profile_id, values in before:
                put_back = "UPDATE profiles SET attributes = %s WHERE organization_id = %s AND id = %s"
                world.desk.do(partial(_execute, put_back, (json.dumps(values), world.desk.organization_id, profile_id)))
            for number, journey in enumerate(journeys):
                played, zone = world.played(journey)
                lived = world.lived(journey, zone)
                if lived != played:
                    about = f"{definitions[number]}\n{sorted(facts)}\n{attributes}"
                    pytest.fail(f"lived {lived}\nplayed {played}\n{about}")
        finally:
            ids.time = time
            runner.run(database.close())

    agree()


async def _execute(statement: Any, given: tuple[Any, ...], tx: Tx) -> None:
    await tx.execute(statement, given)
