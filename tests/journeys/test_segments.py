"""A segment as an entry filter and in branches: journeys follow its current version, and the trace names it."""

import json
from functools import partial

import pytest
from tests.segments.desk import Desk, definition

from regulars.catalog.model import AttributeType
from regulars.conditions.documents import DefinitionRefused
from regulars.journeys import manage, segment_change
from regulars.journeys.backtest.run import backtest
from regulars.journeys.definition import read_definition
from regulars.journeys.segment_change import find_live_users
from regulars.kit.ids import SEGMENT
from regulars.kit.refusals import NotPossible
from regulars.segments.saved import manage as segments

GOLD = {"type": "attribute", "key": "tier", "comparison": "is", "value": "gold"}
EXIT = {"do": "exit"}


@pytest.fixture
def shop(desk):
    """The same organization, with what segments need."""
    return Desk(desk.runner, desk.database)


def asks(segment_id, **more):
    return {"type": "segment", "id": SEGMENT.encode(segment_id), **more}


def branch(condition):
    return {"do": "branch", "id": "b", "if": condition, "then": [{"do": "wait", "days": 1}], "else": [EXIT]}


def test_only_members_enter_and_the_trace_names_the_version(shop):
    gold, other = shop.customer("C1", tier="gold"), shop.customer("C2", tier="blue")
    segment = shop.segment(GOLD)
    journey = shop.journey({"do": "wait", "days": 1}, filter=asks(segment))
    shop.sell(gold, other)
    [run] = shop.runs(journey)
    assert run.profile_id == gold
    entered = shop.trace(run)[0]
    assert entered.detail["segments"] == {SEGMENT.encode(segment): {"version": 1, "in": True}}


def test_a_branch_follows_the_current_version(shop):
    gold, other = shop.customer("C1", tier="gold"), shop.customer("C2", tier="blue")
    segment = shop.segment(GOLD)
    journey = shop.journey(branch(asks(segment)))
    blue = definition({**GOLD, "value": "blue"})
    shop.do(lambda tx: segments.update_segment(tx, shop.organization_id, segment, blue))
    shop.sell(gold, other)
    ways = {run.profile_id: shop.trace(run)[1] for run in shop.runs(journey)}
    assert (ways[gold].event, ways[other].event) == ("else", "then")
    assert ways[other].detail["segments"] == {SEGMENT.encode(segment): {"version": 2, "in": True}}


def test_the_sale_that_triggered_counts(shop):
    customer = shop.customer("C1")
    segment = shop.segment({"type": "tickets", "at_least": 1, "at_most": 1})
    journey = shop.journey({"do": "wait", "days": 1}, filter=asks(segment))
    shop.sell(customer)
    assert len(shop.runs(journey)) == 1


def test_an_attribute_that_the_run_has_just_set_counts_at_its_next_branch(shop):
    customer = shop.customer("C1", tier="blue")
    segment = shop.segment(GOLD)
    journey = shop.journey({"do": "set_attribute", "key": "tier", "value": "gold"}, branch(asks(segment)))
    shop.sell(customer)
    [run] = shop.runs(journey)
    assert [event for step, event in shop.events(run) if step == "b"] == ["then"]


def test_a_segment_with_a_fault_matches_no_customer_also_under_none(shop):
    customer = shop.customer("C1", points="12")
    segment = shop.segment({"type": "attribute", "key": "points", "comparison": "more", "value": "50"})
    journey = shop.journey({"do": "wait", "days": 1}, filter={"type": "none", "of": [asks(segment)]})
    shop.sell(customer)
    assert len(shop.runs(journey)) == 1
    shop.declare("points", AttributeType.TEXT)
    other = shop.customer("C2", points="12")
    shop.sell(other)
    assert len(shop.runs(journey)) == 1


def test_a_journey_says_when_its_segment_is_missing_or_faulty_and_keeps_it_from_being_deleted(shop):
    shop.customer("C1", points="12")
    segment = shop.segment({"type": "attribute", "key": "points", "comparison": "more", "value": "50"})
    unknown = {"name": "J", "trigger": "purchase", "steps": [EXIT], "filter": {"type": "segment", "id": "seg_x"}}
    draft = read_definition(json.dumps(unknown).encode())
    created = shop.do(lambda tx: manage.create_journey(tx, shop.organization_id, draft))
    assert [fault.message for fault in created.faults] == ["There is no segment seg_x."]
    journey = shop.journey({"do": "wait", "days": 1}, filter=asks(segment), live=False)
    with pytest.raises(NotPossible):
        shop.do(lambda tx: segments.delete_segment(tx, shop.organization_id, segment))
    shop.declare("points", AttributeType.TEXT)
    with pytest.raises(DefinitionRefused, match="has no members"):
        shop.activate(journey)
    shop.do(lambda tx: manage.archive(tx, shop.organization_id, journey))
    shop.do(lambda tx: segments.delete_segment(tx, shop.organization_id, segment))


def test_a_backtest_asks_the_segment_as_it_is_now(shop):
    gold, other = shop.customer("C1", tier="gold"), shop.customer("C2", tier="blue")
    journey = shop.journey({"do": "wait", "days": 1}, filter=asks(shop.segment(GOLD)), live=False)
    shop.sale(gold)
    shop.sale(other)
    texting = shop.texting
    report = shop.do(lambda tx: backtest(tx, shop.organization_id, journey, texting=texting, days=1, version=None))
    assert report.total.entries == 1


def test_an_empty_value_is_refused_when_a_journey_is_saved(shop):
    shop.customer("C0", tier="gold")
    none_of = {
        "type": "attribute",
        "key": "tier",
        "comparison": "none_of",
        "values": ["", "gold"],
        "without_value": True,
    }
    for body in ({"steps": [branch(none_of)]}, {"steps": [EXIT], "filter": none_of}):
        content = {"name": "J", "trigger": "purchase", **body}
        journey = read_definition(json.dumps(content).encode())
        with pytest.raises(DefinitionRefused, match=r"It cannot be saved: .*: A value is empty"):
            shop.do(lambda tx, journey=journey: manage.create_journey(tx, shop.organization_id, journey))


def test_a_page_reads_a_bounded_number_of_customers_however_many_journeys_ask(shop, monkeypatch):
    """Before a segment is saved: the customers of three journeys whose next branch checks it."""
    customers = [shop.customer(f"C{number}", tier="gold") for number in range(3)]
    segment = shop.segment(GOLD)
    journeys = [shop.journey({"do": "wait", "days": 1}, branch(asks(segment))) for _ in range(3)]
    shop.sell(*customers)

    def read() -> list[int | None]:
        using = partial(find_live_users, organization_id=shop.organization_id, ids=journeys)
        found = shop.do(lambda tx: using(tx, segment_ids=frozenset({SEGMENT.encode(segment)})))
        return [None if user.at_branch is None else len(user.at_branch) for user in found]

    assert read() == [3, 3, 3]
    monkeypatch.setattr(segment_change, "CUSTOMERS_READ_MAX", 8)
    assert read() == [None, None, None]
