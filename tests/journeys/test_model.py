"""Random facts, edits, pauses, crashes and clocks, played by the real journeys and by a model in memory: who enters,
the order of steps, what is sent and how runs end agree after every turn."""

import asyncio
import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from tests.journeys.clock import CrashError, HeldDatabase, HeldTime
from tests.journeys.desk import Desk
from tests.journeys.model import Journey, Sale, World
from tests.support.gateway import OPEN

from regulars.journeys import manage
from regulars.journeys.definition import read_definition
from regulars.kit import ids
from regulars.kit.refusals import NotPossible
from regulars.texts.settings.model import SmsSettings

EXAMPLES = int(os.environ.get("REGULARS_TEST_EXAMPLES", "4"))
STEPS = int(os.environ.get("REGULARS_TEST_STEPS", "25"))
CUSTOMERS = ("C1", "C2")
TEXT = {"do": "send_text", "text": "Merci"}
DAY = {"do": "wait", "days": 1}
SET = {"do": "set_attribute", "key": "seen", "value": "true"}
SUBSCRIBED = {"type": "subscribed"}
DEFINITIONS: tuple[dict[str, Any], ...] = (
    {"trigger": "purchase", "steps": [{"do": "wait", "days": 2}, TEXT, SET, {"do": "exit", "id": "end"}]},
    {
        "trigger": "purchase",
        "exit_on": ["return"],
        "steps": [{"do": "wait_for_purchase", "days": 3, "then": [SET, TEXT], "else": [TEXT]}, DAY],
    },
    {
        "trigger": "opt_in",
        "steps": [TEXT, DAY, {"do": "branch", "if": SUBSCRIBED, "then": [TEXT, SET], "else": [{"do": "exit"}]}],
    },
    {
        "trigger": "purchase",
        "reentry": {"policy": "never"},
        "filter": SUBSCRIBED,
        "steps": [{"do": "split", "percent": 50, "then": [DAY, TEXT], "else": [TEXT, {"do": "exit"}]}, DAY],
    },
    {"trigger": "return", "steps": [{"do": "wait", "hours": 5}, SET, TEXT, TEXT]},
    {
        "trigger": "purchase",
        "reentry": {"policy": "after_days", "days": 3},
        "exit_on": ["purchase"],
        "steps": [{"do": "wait_for_purchase", "hours": 30, "then": [TEXT], "else": [DAY, TEXT]}],
    },
)


def definition_of(given: dict[str, Any]) -> Any:
    return read_definition(json.dumps({"name": "A journey", **given}).encode())


class Journeys(RuleBasedStateMachine):
    """`url` is set by the test."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.database = HeldDatabase(self.url, pool_max=6, lock_timeout_ms=20_000)
        self.database.now = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
        # An id begins with the time of its sale.
        ids.time = HeldTime(self.database)  # type: ignore[assignment]  # it is asked for this alone
        self.runner.run(self.database.open())
        self.desk = Desk(self.runner, self.database)
        self.desk.settings(SmsSettings(brand="Shop", rules=OPEN, caps=()))
        self.world = World({name: self.desk.customer(name) for name in CUSTOMERS}, self.database.now)

    def teardown(self) -> None:
        ids.time = time
        self.runner.run(self.database.close())
        self.runner.close()

    @initialize(
        first=st.sampled_from(DEFINITIONS),
        second=st.sampled_from(DEFINITIONS),
        consented=st.sets(st.sampled_from(CUSTOMERS)),
    )
    def begin(self, first: dict[str, Any], second: dict[str, Any], consented: set[str]) -> None:
        for given in (first, second):
            identifier = self.desk.journey(*given["steps"], **{k: v for k, v in given.items() if k != "steps"})
            journey = Journey(identifier, [given])
            self.world.journeys.append(journey)
            self.world.activate(journey, None)
        for customer in sorted(consented):
            self.opt_in(customer)

    def tick(self, passed: timedelta = timedelta(seconds=1)) -> None:
        """Time passes with everything that happens."""
        self.database.pass_time(passed)
        self.world.now = self.database.now

    @rule(hours=st.integers(1, 80), works=st.booleans())
    def wait(self, hours: int, works: bool) -> None:  # hypothesis passes it by name
        self.tick(timedelta(hours=hours))
        if works:
            self.work()

    @rule(
        customer=st.sampled_from(CUSTOMERS),
        kind=st.sampled_from(["PURCHASE", "PURCHASE", "RETURN"]),
        turns=st.integers(0, 3),
    )
    def sell(self, customer: str, kind: str, turns: int) -> None:
        """And perhaps the worker's first turns after it: none, the facts are delivered, runs go on, texts leave."""
        self.tick()
        identifier = self.desk.sale(self.world.ids[customer], kind=kind)
        self.world.sell(Sale(identifier, customer, kind, self.world.now))
        for turn in (self.deliver_facts, self.advance, self.send_well)[:turns]:
            turn()

    @rule()
    def work(self) -> None:
        """Until nothing is left to do at this time."""
        for _ in range(3):
            self.deliver_facts()
            self.advance()
            self.send_well()

    @precondition(lambda self: self.world.sales)
    @rule(data=st.data())
    def publish_again(self, data: st.DataObject) -> None:
        self.tick()
        sale = data.draw(st.sampled_from(self.world.sales))
        self.desk.publish_sales(sale.id)
        self.world.outbox.append(("sales", sale))

    @rule(customer=st.sampled_from(CUSTOMERS))
    def opt_in(self, customer: str) -> None:
        self.tick()
        self.desk.opt_in(customer, self._number(customer))
        self.world.opt_in(customer)

    @rule(customer=st.sampled_from(CUSTOMERS))
    def opt_out(self, customer: str) -> None:
        self.tick()
        self.desk.opt_out(self._number(customer))
        self.world.opt_out(customer)

    @rule(which=st.integers(0, 1), given=st.sampled_from(DEFINITIONS))
    def edit(self, which: int, given: dict[str, Any]) -> None:
        journey = self.world.journeys[which]
        if journey.state == "archived":
            return
        self.tick()
        self.desk.do(lambda tx: manage.update_journey(tx, self.desk.organization_id, journey.id, definition_of(given)))
        self.world.edit(journey, given)

    @rule(which=st.integers(0, 1))
    def pause(self, which: int) -> None:
        journey = self.world.journeys[which]
        if journey.state == "live":
            self.tick()
            self.desk.do(lambda tx: manage.pause(tx, self.desk.organization_id, journey.id))
            self.world.pause(journey)

    @rule(which=st.integers(0, 1), waiting=st.sampled_from([None, "continue", "end"]))
    def resume(self, which: int, waiting: Any) -> None:
        journey = self.world.journeys[which]
        if journey.state != "paused":
            return
        self.tick()
        if self.world.may_activate(journey, waiting):
            self.desk.activate(journey.id, waiting=waiting)
            self.desk.turn(self.desk.resumed)
            self.world.activate(journey, waiting)
        else:
            with pytest.raises(NotPossible):
                self.desk.activate(journey.id, waiting=waiting)

    @rule(chance=st.integers(0, 9))
    def archive(self, chance: int) -> None:
        journey = self.world.journeys[1]
        if chance == 0 and journey.state != "archived":
            self.tick()
            self.desk.do(lambda tx: manage.archive(tx, self.desk.organization_id, journey.id))
            self.world.archive(journey)

    @rule()
    def deliver_facts(self) -> None:
        self.tick()
        self.desk.one_pass(self.desk.outbox)
        self.world.deliver_facts()
        self.compare()

    @rule()
    def advance(self) -> None:
        self.tick()
        self.desk.one_pass(self.desk.runs_queue)
        self.world.advance()
        self.compare()

    def send_well(self) -> None:
        self.send(dies=False)

    @rule(dies=st.booleans())
    def send(self, dies: bool) -> None:  # hypothesis passes it by name
        self.tick()

        async def die(_text: Any) -> Any:
            raise RuntimeError("killed")

        self.desk.gateway.answer = die if dies else None
        self.desk.turn()
        self.world.send(dies=dies)
        self.compare()

    @rule(which=st.integers(0, 2))
    def crash(self, which: int) -> None:
        """Before anything is committed: as if the turn had never been."""
        self.tick()
        queue = (self.desk.outbox, self.desk.runs_queue, self.desk.texts_queue)[which]
        self.database.is_dying = True
        with pytest.raises(CrashError):
            self.desk.one_pass(queue)
        self.database.is_dying = False
        self.compare()

    def compare(self) -> None:
        names = {identifier: name for name, identifier in self.world.ids.items()}
        for journey in self.world.journeys:
            real = [
                (
                    names[run.profile_id],
                    run.version,
                    run.state,
                    run.step,
                    run.waits_for,
                    run.outcome,
                    self.desk.events(run),
                )
                for run in self.desk.runs(journey.id)
            ]
            assert real == [run.shown() for run in journey.runs]
        assert len(self.desk.sent) == self.world.sent

    def _number(self, customer: str) -> str:
        return f"+3361234560{customer[1:]}"


@pytest.mark.timeout(900)
def test_journeys_do_what_the_model_does(api_database_url):
    Journeys.url = api_database_url
    run_state_machine_as_test(
        Journeys, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None)
    )
