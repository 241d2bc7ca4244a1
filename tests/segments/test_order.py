"""Segments that ask for others: each is looked into once, however often it is asked for and however long the chain."""

from datetime import UTC, date, datetime
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from tests.segments.desk import definition
from tests.segments.fed_shop import ZONE, FedShop

from regulars.segments.analysis.model import Asked
from regulars.segments.definition import All, Any, Condition, Definition, Group, InSegment, Nothing
from regulars.segments.explain.evaluate import Judge
from regulars.segments.explain.model import Customer, Standing
from regulars.segments.kept.resolve import Other, Resolved
from regulars.segments.order import innermost_first

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
    assert innermost_first(asks("a", "c", "e", "none"), segments) == ["e", "c", "b", "a"]
    assert innermost_first(NAMED, segments) == []


def test_a_circle_which_nobody_can_save_ends():
    assert sorted(innermost_first(asks("a"), {"a": asks("b"), "b": asks("a", "a")})) == ["a", "b"]


@pytest.mark.parametrize(("segments", "is_in"), [(fanned(), True), (chained(), False)], ids=["fanned", "chained"])
def test_columns_and_rows_agree_about_many_mentions_and_long_chains(shop: FedShop, segments, is_in):
    shop.customer("p0", first_name="Zoé")
    shop.begin()
    shop.build()
    last = asks([*segments][-1])
    asked = Asked(match=last, segments=segments, zone=ZONE, today=date(2026, 11, 11))
    assert shop.figures(asked).total == is_in
    others = {
        name: Other(name=name, version=1, definition=Definition(name=name, match=match))
        for name, match in segments.items()
    }
    resolved = Resolved(
        match=last,
        attributes={},
        properties={},
        stores={},
        others=others,
        zone=ZoneInfo(ZONE),
        now=datetime(2026, 11, 11, tzinfo=UTC),
        faults=(),
    )
    judge = Judge(resolved)
    assert judge.is_in(customer(is_named=True)) is is_in
    assert judge.is_in(customer(is_named=False)) is not is_in


def customer(*, is_named: bool) -> Customer:
    return Customer(
        id=uuid4(),
        attributes={},
        created=date(2026, 1, 1),
        is_named=is_named,
        country=None,
        standing=Standing("never_asked"),
        sales=(),
        texts=(),
    )
