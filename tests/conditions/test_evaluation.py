"""Whether a tree holds for one customer: yes, no, or not known."""

from datetime import UTC, date, datetime, timedelta

import pytest

from regulars.catalog.model import AttributeType
from regulars.conditions.check import ConditionContext
from regulars.conditions.customers import Customer, CustomerConsent, CustomerSale, SaleLine, Subject, Ticket
from regulars.conditions.evaluation import Evaluator
from regulars.conditions.labels import Labels
from regulars.conditions.tree import (
    All,
    Bought,
    Consent,
    InSegment,
    Nothing,
    OfAmount,
    OfAttribute,
    OfProduct,
    OfProperty,
    OfStore,
    Returned,
    Spend,
    TicketValue,
    Window,
)
from regulars.conditions.tree import Any as AnyOf
from regulars.kit.ids import new_uuid

TODAY = date(2026, 11, 15)
LYON, PARIS = new_uuid(), new_uuid()
KNOWN = ConditionContext(
    attributes={"points": (AttributeType.NUMBER, ())},
    properties={"size": (AttributeType.NUMBER, ())},
    stores={"LYO": LYON},
)


def sale(kind="PURCHASE", *, cents=1000, days_ago=0, lines=(), store=LYON) -> CustomerSale:
    at = datetime(2026, 11, 15, 12, tzinfo=UTC) - timedelta(days=days_ago)
    return CustomerSale(new_uuid(), "T", kind, at.date(), at, at, store, "EUR", cents, tuple(lines))


def line(size, *, sku="A", quantity=1) -> SaleLine:
    return SaleLine(sku, {} if size is None else {"size": size}, 1000, quantity * 1_000_000)


def subject(*sales, ticket=None, segments=None, **attributes) -> Subject:
    customer = Customer(
        id=new_uuid(),
        attributes=attributes,
        created=TODAY,
        is_named=True,
        country=None,
        consent=CustomerConsent("may_be_texted"),
        sales=sales,
    )
    return Subject(customer, TODAY, segments or {}, ticket)


def holds(condition, given: Subject) -> bool | None:
    return Evaluator(KNOWN).holds(condition, given)


UNREADABLE = OfAttribute(key="points", comparison="is", value="5")
NO_LINE = OfProduct(property=OfProperty(key="size", comparison="is", value="1"))
YES, NO = Consent(state="may_be_texted"), Consent(state="may_be_texted", is_=False)


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        (UNREADABLE, None),
        (Nothing(of=(UNREADABLE,)), None),
        (Nothing(of=(UNREADABLE, YES)), False),
        (Nothing(of=(UNREADABLE, NO)), None),
        (All(of=(UNREADABLE, YES)), None),
        (All(of=(UNREADABLE, NO)), False),
        (AnyOf(of=(UNREADABLE, YES)), True),
        (AnyOf(of=(UNREADABLE, NO)), None),
        (Nothing(of=(Nothing(of=(UNREADABLE,)),)), None),
        (OfAttribute(key="unknown", comparison="is_set"), None),
        (InSegment(id="gone"), None),
        (Nothing(of=(InSegment(id="here"),)), True),
        (NO_LINE, None),
        # What its type does not compare is not known of any customer, with or without sales.
        (Bought(none=True, property=OfProperty(key="size", comparison="starts_with", value="4")), None),
        (Nothing(of=(NO_LINE,)), None),
    ],
)
def test_what_is_not_known_makes_no_group_hold(condition, answer):
    assert holds(condition, subject(points="many", segments={"here": False})) is answer


def test_no_net_spend_includes_customers_who_only_returned():
    none = Spend(currency="EUR", none=True)
    assert holds(none, subject()) is True
    assert holds(none, subject(sale("RETURN"))) is True
    assert holds(none, subject(sale(cents=500), sale("RETURN", cents=500))) is True
    assert holds(none, subject(sale())) is False
    assert holds(Bought(count="articles", none=True), subject(sale("RETURN", lines=[line(1)]))) is True


def test_articles_are_bought_net_of_returns():
    given = subject(sale(lines=[line(1, quantity=3)]), sale("RETURN", lines=[line(1, quantity=1)]))
    assert holds(Bought(count="articles", at_least=2, at_most=2), given) is True
    assert holds(Bought(at_least=1, at_most=1), given) is True
    assert holds(Returned(), given) is True


def test_purchase_days_count_several_purchases_of_a_day_once():
    given = subject(sale("RETURN", days_ago=5), sale(days_ago=3), sale(days_ago=3), sale())
    assert holds(Bought(count="days", at_least=2, at_most=2), given) is True
    assert holds(Bought(count="days", at_least=3), given) is False
    assert holds(Bought(count="days", none=True), given) is False
    assert holds(Bought(count="days", at_most=1, window=Window(last_days=3)), given) is True


def test_the_last_days_are_as_many_days_and_today_is_one_of_them():
    given = subject(sale(days_ago=29))
    assert holds(Bought(window=Window(last_days=30)), given) is True
    assert holds(Bought(window=Window(last_days=29)), given) is False


def test_a_line_that_cannot_be_read_is_tried_both_ways():
    given = subject(sale(lines=[line(40)]), sale(lines=[line("large")]))
    of_size = {"property": OfProperty(key="size", comparison="is", value="40")}
    assert holds(Bought(**of_size), given) is True
    assert holds(Bought(at_least=2, **of_size), given) is None
    assert holds(Bought(at_least=3, **of_size), given) is False
    assert holds(Bought(none=True, **of_size), given) is False
    assert holds(TicketValue(currency="EUR", at_least_cents=1, **of_size), given) is True
    # Only lines of the product that is asked for may be of any size.
    assert holds(Bought(products=("B",), none=True, **of_size), given) is True


def test_the_ticket_answers_for_itself_and_is_no_earlier_purchase():
    bought = sale(lines=[line(40), line("large", sku="B")])
    ticket = Ticket(bought.id, LYON, 8000, "EUR", bought.lines)
    given = subject(bought, ticket=ticket)
    assert holds(Bought(none=True), given) is True
    assert holds(Bought(none=True), subject(bought)) is False
    assert holds(OfStore(any_of=("LYO",)), given) is True
    assert holds(OfAmount(at_least_cents=8001), given) is False
    size = OfProperty(key="size", comparison="is", value="41")
    assert holds(OfProduct(any_of=("A",), property=size), given) is False
    assert holds(OfProduct(any_of=("A", "B"), property=size), given) is None


def test_a_tree_is_described_in_one_line():
    tree = All(
        of=(AnyOf(of=(YES, UNREADABLE)), Nothing(of=(OfAmount(at_least_cents=1990),)), InSegment(id="seg_x", is_=False))
    )
    assert Labels().line(tree) == (
        "(may be texted or points is 5) and none of: the ticket is at least 19.90 and not in the segment seg_x"
    )
