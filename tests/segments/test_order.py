"""Segments that ask for others: each is looked into once, however often it is asked for and however long the chain."""

from datetime import date
from uuid import uuid4

import pytest
from tests.columns.fed_shop import ZONE, FedShop
from tests.segments.desk import definition

from regulars.columns.protocol import SegmentQuery
from regulars.conditions.check import ConditionContext, ReferencedSegment
from regulars.conditions.customers import Customer, CustomerConsent, Subject
from regulars.conditions.evaluation import Evaluator
from regulars.conditions.tree import All, Any, Condition, Group, InSegment, Nothing, order_referenced_segments

NAMED = definition({"type": "named"}).match
Segments = dict[str, Group | None]


def asks(*names: str) -> Group:
    return Any(of=tuple(InSegment(id=name) for name in names))


def fanned() -> Segments:
    """Each asks fifty times for the one before: 50 to the power of 9 ways lead to the first."""
    return {"s0": NAMED, **{f"s{level}": asks(*[f"s{level - 1}"] * 50) for level in range(1, 10)}}


def chained() -> Segments:
    """As many as an organization may have, in a row, each at the bottom of its groups."""

    def deep(inner: Condition) -> Group:
        return All(of=(Any(of=(All(of=(Any(of=(Nothing(of=(inner,)),)),)),)),))

    return {"s0": NAMED, **{f"s{level}": deep(InSegment(id=f"s{level - 1}")) for level in range(1, 500)}}


def test_each_comes_once_after_those_it_asks_for():
    segments: Segments = {"a": asks("b", "c"), "b": asks("c", "gone"), "c": NAMED, "d": NAMED, "e": None}
    assert order_referenced_segments(asks("a", "c", "e", "none"), segments) == ["e", "c", "b", "a"]
    assert order_referenced_segments(NAMED, segments) == []


def test_a_cycle_which_cannot_be_saved_ends():
    assert sorted(order_referenced_segments(asks("a"), {"a": asks("b"), "b": asks("a", "a")})) == ["a", "b"]


@pytest.mark.parametrize(("segments", "is_in"), [(fanned(), True), (chained(), False)], ids=["fanned", "chained"])
def test_columns_and_rows_agree_about_many_mentions_and_long_chains(shop: FedShop, segments, is_in):
    shop.customer("p0", first_name="Zoé")
    shop.begin_and_build()
    last = asks([*segments][-1])
    query = SegmentQuery(match=last, segments=segments, zone=ZONE, today=date(2026, 11, 11))
    assert shop.figures(query).total == is_in
    known = ConditionContext(segments={name: ReferencedSegment(name, 1, match) for name, match in segments.items()})
    evaluator = Evaluator(known)
    for person in (customer(is_named=True), customer(is_named=False)):
        inside = evaluator.find_segments(person, date(2026, 11, 11))
        assert evaluator.holds(last, Subject(person, date(2026, 11, 11), inside)) is (person.is_named is is_in)


def customer(*, is_named: bool) -> Customer:
    return Customer(
        id=uuid4(),
        attributes={},
        created=date(2026, 1, 1),
        is_named=is_named,
        country=None,
        consent=CustomerConsent("never_asked"),
        sales=(),
        texts=(),
    )
