"""The pure rules of a sale: when it may trigger automations, when it lies in the future, when two tickets are one."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from tests.sales.desk import STORE, ticket
from tests.support import samples

from regulars.kit.ids import ByExternalId, ById, new_uuid
from regulars.profiles.model import ProfileRef
from regulars.sales.model import StoredSale, automation_state, is_same_ticket
from regulars.stores.model import StoreRef

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
WEEK = timedelta(days=7)
MILLISECOND = timedelta(milliseconds=1)
SHOP = StoreRef(new_uuid(), STORE)
ADA = ProfileRef(new_uuid(), "ada")


def stored(*, age: timedelta = timedelta(), profile: ProfileRef | None = ADA, **changes):
    sale = ticket("T1", **({"profile_id": profile.external_id} if profile else {}), **changes)
    sale = msgspec.structs.replace(sale, occurred_at=NOW - age)
    return StoredSale(new_uuid(), sale, SHOP, profile, NOW)


@pytest.mark.parametrize("age", [-timedelta(seconds=30), timedelta(), WEEK - MILLISECOND, WEEK])
def test_eligible_the_sale_is_recent_enough_up_to_exactly_seven_days(age):
    assert automation_state(stored(age=age), is_new=True, now=NOW) == "eligible"


@pytest.mark.parametrize("age", [WEEK + MILLISECOND, timedelta(days=365), timedelta(days=365 * 2000)])
def test_stale_fact_the_sale_is_older_than_seven_days(age):
    assert automation_state(stored(age=age), is_new=True, now=NOW) == "stale_fact"


@pytest.mark.parametrize("age", [timedelta(), WEEK, WEEK + MILLISECOND])
def test_not_applicable_the_external_id_was_already_ingested(age):
    assert automation_state(stored(age=age), is_new=False, now=NOW) == "not_applicable"


@pytest.mark.parametrize("age", [timedelta(), WEEK, WEEK + MILLISECOND])
def test_not_applicable_the_sale_is_anonymous(age):
    assert automation_state(stored(age=age, profile=None), is_new=True, now=NOW) == "not_applicable"


def test_a_return_is_as_eligible_as_a_purchase():
    assert automation_state(stored(type="RETURN"), is_new=True, now=NOW) == "eligible"


BODY = samples.sale(
    STORE,
    external_id="T1",
    occurred_at="2026-03-10T12:00:00.000Z",
    profile_id="ada",
    total_tax_cents=100,
    source="pos",
    payments=[{"method": "card", "amount": 1.5}],
    loyalty={"points": 3},
    metadata={"a": 1, "b": {"c": [True, None]}},
)


def read(**changes):
    return ticket(**{**BODY, **changes})


def is_same(sale, *, store=SHOP, profile=ADA):
    first = StoredSale(new_uuid(), read(), SHOP, ADA, NOW)
    return is_same_ticket(first, sale, store=store, profile=profile)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"unknown": {"x": 1}},
        {"occurred_at": "2026-03-10T14:00:00+02:00"},
        {"occurred_at": "2026-03-10T12:00:00.0009Z"},
        {"metadata": {"b": {"c": [True, None]}, "a": 1}},
        {"metadata": {"a": 1.0, "b": {"c": [True, None]}}},
        {"line_items": [samples.line(unit=None, discount_cents=None)]},
        {"line_items": [samples.line(quantity=1.0)]},
    ],
    ids=str,
)
def test_the_same_content_in_other_words_is_the_same_ticket(changes):
    assert is_same(read(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "RETURN"},
        {"occurred_at": "2026-03-10T12:00:00.001Z"},
        {"currency": "CHF"},
        {"total_amount_cents": 4901},
        {"total_discount_cents": 1},
        {"total_tax_cents": None},
        {"total_tax_cents": 101},
        {"source": None},
        {"source": "POS"},
        {"payments": None},
        {"payments": []},
        {"loyalty": {"points": 4}},
        {"metadata": {"a": 1}},
        {"metadata": {"a": True, "b": {"c": [True, None]}}},
        {"metadata": {"a": 1, "b": {"c": [1, None]}}},
        {"line_items": [samples.line(), samples.line()]},
        {"line_items": [samples.line(quantity=2)]},
        {"line_items": [samples.line(product=None)]},
    ],
    ids=str,
)
def test_any_other_content_is_another_ticket(changes):
    assert not is_same(read(**changes))


def test_references_are_compared_by_what_they_mean():
    by_id = msgspec.structs.replace(read(), store=ById(SHOP.id), profile=ById(ADA.id))
    assert is_same(by_id)
    assert not is_same(read(), store=StoreRef(new_uuid(), "other"))
    assert not is_same(read(), store=None)
    assert not is_same(msgspec.structs.replace(read(), profile=ByExternalId("nobody")), profile=None)
    assert not is_same(read(), profile=ProfileRef(new_uuid(), "eve"))
    assert not is_same(read(profile_id=None), profile=None)
