"""What cannot be evaluated fails closed: no customer enters, runs wait at the branch, whatever groups contain the fault."""

from datetime import timedelta
from typing import Any

import pytest
from tests.segments.desk import Desk, line

from regulars.catalog.model import AttributeType
from regulars.conditions.documents import DefinitionRefused
from regulars.journeys import manage
from regulars.journeys.manage import find_unevaluable_journeys
from regulars.kit.ids import SEGMENT

HOLDS = {"type": "currency", "any_of": ["EUR"]}
FAILS = {"type": "currency", "any_of": ["CHF"]}
# A sound condition and the groups around it that let the customer in; with a fault in it none of them may.
GROUPS = {
    "alone": (True, lambda it: it),
    "all": (True, lambda it: {"type": "all", "of": [HOLDS, it]}),
    "any": (None, lambda it: {"type": "any", "of": [it, HOLDS]}),
    "none": (False, lambda it: {"type": "none", "of": [it, FAILS]}),
    "none of none": (True, lambda it: {"type": "none", "of": [{"type": "none", "of": [it]}]}),
    "any of all of none": (None, lambda it: {
        "type": "any", "of": [HOLDS, {"type": "all", "of": [HOLDS, {"type": "none", "of": [it]}]}],
    }),
    "none of any of all": (False, lambda it: {
        "type": "none", "of": [FAILS, {"type": "any", "of": [FAILS, {"type": "all", "of": [HOLDS, it]}]}],
    }),
}  # fmt: skip
LINES = [line("A", colour="red")]


@pytest.fixture
def shop(desk):
    return Desk(desk.runner, desk.database)


class Faults:
    """Conditions that are sound until `break_all`; each is given as one that holds for the customer and one that does
    not, so that every group can be entered while nothing is wrong."""

    def __init__(self, shop: Desk) -> None:
        self.shop = shop
        self.customer = shop.customer("C1", tier="Gold", size="L", shelf="up", grade="A", gone="x")
        shop.declare("grade", AttributeType.ENUM, "A", "B")
        shop.declare_property("colour", AttributeType.TEXT)
        self.faulty_segment = shop.segment({"type": "attribute", "key": "tier", "comparison": "is", "value": "Gold"})
        self.other_segment = shop.segment({"type": "attribute", "key": "tier", "comparison": "is", "value": "Blue"})
        self.deleted = [shop.segment({"type": "named"}), shop.segment({"type": "named", "is": False})]
        self.nested = [
            shop.segment({"type": "segment", "id": SEGMENT.encode(it)})
            for it in (self.faulty_segment, self.other_segment)
        ]
        shop.alter(
            "INSERT INTO stores (organization_id, id, external_id, created_at, updated_at)"
            " VALUES (%s, gen_random_uuid(), 'LYON', now(), now())"
        )

    def pairs(self) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        def attribute(key: str, comparison: str, value: str) -> dict[str, Any]:
            return {"type": "attribute", "key": key, "comparison": comparison, "value": value}

        def product(value: str) -> dict[str, Any]:
            return {"type": "product", "property": "colour", "comparison": "is", "value": value}

        def segment(identifier: Any) -> dict[str, Any]:
            return {"type": "segment", "id": SEGMENT.encode(identifier)}

        return {
            "the value cannot be read": (attribute("tier", "is", "Gold"), attribute("tier", "is", "Blue")),
            "the type does not offer it": (attribute("size", "contains", "l"), attribute("size", "contains", "x")),
            "no value of the enum": (attribute("grade", "is", "A"), attribute("grade", "is", "B")),
            "no such attribute": (attribute("gone", "is", "x"), attribute("gone", "is", "y")),
            "a retyped property": (product("red"), product("blue")),
            "no such segment": (segment(self.deleted[0]), segment(self.deleted[1])),
            "a segment with a fault": (segment(self.faulty_segment), segment(self.other_segment)),
            "a segment inside one": (segment(self.nested[0]), segment(self.nested[1])),
            "no such store": (
                {"type": "store", "any_of": ["PARIS", "LYON"]},
                {"type": "store", "any_of": ["LYON"]},
            ),
        }

    def conditions(self) -> list[dict[str, Any]]:
        """Every kind of fault in every group, in the form that holds for the customer."""
        return [
            wrap(holding if wanted is not False else failing)
            for holding, failing in self.pairs().values()
            for wanted, wrap in GROUPS.values()
        ]

    def some_conditions(self) -> list[dict[str, Any]]:
        """Every kind of fault alone, and one of them in every group."""
        pairs = list(self.pairs().values())
        return [
            *(holding for holding, _ in pairs),
            *(wrap(pairs[0][wanted is False]) for wanted, wrap in GROUPS.values()),
        ]

    def break_all(self) -> None:
        self.shop.declare("tier", AttributeType.NUMBER)
        self.shop.declare("size", AttributeType.NUMBER)
        self.shop.declare("grade", AttributeType.ENUM, "C")
        self.shop.declare_property("colour", AttributeType.DATE)
        self.shop.alter("DELETE FROM profile_attributes WHERE organization_id = %s AND key = 'gone'")
        self.shop.alter("DELETE FROM segments WHERE organization_id = %s AND id = ANY (%s)", self.deleted)
        self.shop.alter("UPDATE stores SET external_id = 'NIMES' WHERE organization_id = %s AND external_id = 'LYON'")

    def repair(self) -> None:
        for key in ("tier", "size", "grade"):
            self.shop.declare(key, AttributeType.TEXT)
        self.shop.declare_property("colour", AttributeType.TEXT)
        self.shop.customer("C2", gone="x")
        self.shop.alter("UPDATE stores SET external_id = 'LYON' WHERE organization_id = %s AND external_id = 'NIMES'")


def test_no_customer_enters_by_a_filter_that_cannot_be_evaluated(shop):
    faults = Faults(shop)
    journeys = [shop.journey({"do": "exit"}, filter=condition) for condition in faults.conditions()]
    shop.sell(faults.customer, lines=LINES)
    assert [len(shop.runs(journey)) for journey in journeys] == [1] * len(journeys)
    faults.break_all()
    shop.sell(faults.customer, lines=LINES)
    assert [len(shop.runs(journey)) for journey in journeys] == [1] * len(journeys)
    rows = shop.do(lambda tx: manage.list_journeys(tx, shop.organization_id, limit=1000))
    found = shop.do(lambda tx: find_unevaluable_journeys(tx, shop.organization_id, rows))
    assert {journey_id: set(places) for journey_id, places in found.items()} == {it: {"filter"} for it in journeys}


def test_runs_wait_at_a_branch_that_cannot_be_judged_and_go_on_or_end_after_thirty_days(shop):
    faults = Faults(shop)
    ways = {"then": [{"do": "exit", "id": "yes"}], "else": [{"do": "exit", "id": "no"}]}
    journeys = [
        shop.journey({"do": "wait", "days": 1}, {"do": "branch", "id": "b", "if": condition, **ways})
        for condition in faults.some_conditions()
    ]
    shop.sell(faults.customer, lines=LINES)
    faults.break_all()
    shop.alter("UPDATE journey_runs SET due_at = now() - interval '1 second' WHERE organization_id = %s")
    shop.work()
    runs = [run for journey in journeys for run in shop.runs(journey)]
    assert {(run.state, run.step, run.waits_for, run.outcome) for run in runs} == {("active", "b", "fault", None)}
    assert all(timedelta(0) < run.due_at - run.waiting_since <= timedelta(hours=1) for run in runs)
    assert {event for _, event in shop.events(runs[0])} == {"entered", "waits", "went on", "cannot judge"}
    # Those whose fault is repaired take their way; a segment that was deleted stays so, and 30 days are enough.
    faults.repair()
    shop.alter("UPDATE journey_runs SET due_at = now() - interval '1 second' WHERE organization_id = %s")
    shop.work()
    gone = list(faults.pairs()).index("no such segment")
    runs = [run for journey in journeys for run in shop.runs(journey)]
    assert {(run.outcome, run.step) for run in runs if run != runs[gone]} == {("exited", "yes")}
    assert runs[gone].waits_for == "fault"
    shop.alter(
        "UPDATE journey_runs SET due_at = now() - interval '1 s', waiting_since = now() - interval '30 days'"
        " WHERE organization_id = %s AND waits_for = 'fault'"
    )
    shop.work()
    [ended] = shop.runs(journeys[gone])
    assert ended.outcome == "the branch could not be judged for 30 days"
    assert ended.reason.startswith("There is no segment")


def test_a_store_that_does_not_exist_keeps_a_journey_from_going_live(shop):
    journey = shop.journey({"do": "exit"}, filter={"type": "store", "any_of": ["NOWHERE"]}, live=False)
    with pytest.raises(DefinitionRefused, match="filter: There is no store NOWHERE"):
        shop.activate(journey)
    draft = shop.do(lambda tx: manage.load_journey(tx, shop.organization_id, journey))
    assert [fault.place for fault in draft.faults] == ["filter"]
