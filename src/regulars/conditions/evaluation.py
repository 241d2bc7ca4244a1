"""Whether conditions hold for one customer, and what they saw. Plain, one customer at a time: what every faster way of
evaluating is held against.

There are three answers. A condition holds, or it does not, or that is not known, since a value cannot be read by its
type. What is not known makes no group hold, not even *none*. A fault of the definition is no question of one customer:
the caller finds it (`check.py`) and asks nothing here.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from regulars.catalog.model import spell
from regulars.conditions.check import Known, is_askable
from regulars.conditions.comparisons import ValueTest, days_of, holds_on
from regulars.conditions.customers import (
    Customer,
    Explained,
    Line,
    Passes,
    Sale,
    Saw,
    SawArticles,
    SawConsent,
    SawCountry,
    SawDay,
    SawMoney,
    SawName,
    SawOfSales,
    SawSegment,
    SawTexts,
    SawTicket,
    SawTimes,
    SawValue,
    Ticket,
    articles_of,
    is_among,
    millionths,
    net_cents,
    spend_of,
)
from regulars.conditions.tree import (
    All,
    Any,
    Bought,
    Compared,
    Condition,
    Consent,
    Country,
    Created,
    FirstPurchase,
    Group,
    InSegment,
    LastPurchase,
    Leaf,
    Named,
    OfAmount,
    OfAttribute,
    OfCurrency,
    OfProduct,
    OfSales,
    OfStore,
    OfTicket,
    OfTimes,
    Path,
    Returned,
    Spend,
    Texts,
    TicketValue,
    innermost_first,
)
from regulars.kit.ids import JOURNEY


class Subject(NamedTuple):
    """Who is asked about, and when. `segments` says in which segments they are; None where that is not known."""

    customer: Customer
    today: date
    segments: Mapping[str, bool | None] = {}
    ticket: Ticket | None = None


class Evaluator:
    """Judges customers; what is asked of several of them is made ready once."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self._tests: dict[tuple[Compared, date], ValueTest | None] = {}
        matches = {segment_id: None if it.faults else it.match for segment_id, it in known.segments.items()}
        asked = All(of=tuple(InSegment(id=segment_id) for segment_id in matches))
        self._segments = [(it, match) for it in innermost_first(asked, matches) if (match := matches[it]) is not None]

    def find_segments(self, customer: Customer, today: date) -> dict[str, bool | None]:
        """In which of the known segments they are; each is looked into once, however often it is asked for."""
        inside: dict[str, bool | None] = {}
        for segment_id, match in self._segments:
            inside[segment_id] = self.holds(match, Subject(customer, today, inside))
        return inside

    def holds(self, condition: Condition, subject: Subject) -> bool | None:
        return self.explain(condition, subject).holds

    def explain(self, condition: Condition, subject: Subject, path: Path = ()) -> Explained:
        if isinstance(condition, Group):
            inner = tuple(self.explain(one, subject, (*path, place)) for place, one in enumerate(condition.of))
            return Explained(path, condition, combine(condition, [one.holds for one in inner]), None, inner)
        holds, saw = self._leaf(condition, subject)
        return Explained(path, condition, holds, saw)

    def _leaf(self, condition: Leaf, subject: Subject) -> tuple[bool | None, Saw | None]:
        customer, today = subject.customer, subject.today
        match condition:
            case OfAttribute():
                return self._attribute(condition, subject)
            case Consent():
                return self._consent(condition, subject), SawConsent(customer.standing)
            case Texts():
                return _texts(condition, subject)
            case Created(when=when):
                return holds_on(when, customer.created, today), SawDay(customer.created)
            case Named(is_=wanted):
                return customer.is_named is wanted, SawName(customer.is_named)
            case Country(any_of=several):
                return customer.country in several, SawCountry(customer.country)
            case InSegment(id=segment_id, is_=wanted):
                is_in = subject.segments.get(segment_id)
                return None if is_in is None else is_in is wanted, self._segment(segment_id)
            case _ if isinstance(condition, OfTicket):
                holds = None if subject.ticket is None else self._ticket(condition, subject.ticket, today)
                return holds, SawTicket(subject.ticket)
            case _:
                return self._sales(condition, subject)

    def _segment(self, segment_id: str) -> SawSegment | None:
        known = self.known.segments.get(segment_id)
        return None if known is None else SawSegment(known.name, known.version, is_faulty=bool(known.faults))

    def _attribute(self, condition: OfAttribute, subject: Subject) -> tuple[bool | None, Saw]:
        value = subject.customer.attributes.get(condition.key)
        test = self._test(condition, subject.today)
        if test is None:
            return None, SawValue(value)
        answer = test(value)
        return answer, SawValue(value, is_readable=answer is not None)

    def _test(self, asked: Compared, today: date) -> ValueTest | None:
        """None: the key is unknown, or its type does not offer the comparison."""
        if (asked, today) not in self._tests:
            known = self.known
            types = known.attributes if isinstance(asked, OfAttribute) else known.properties
            test = None
            if is_askable(asked, types):
                declared, allowed = types[asked.key]
                test = ValueTest(asked, declared=declared, allowed_values=allowed, today=today, zone=known.zone)
            self._tests[asked, today] = test
        return self._tests[asked, today]

    def _consent(self, condition: Consent, subject: Subject) -> bool:
        standing = subject.customer.standing
        holds = standing.state == condition.state
        if condition.sources:
            holds &= standing.source in condition.sources
        if condition.stores:
            holds &= standing.store_id in self._stores(condition.stores)
        if condition.since is not None:
            holds &= standing.since is not None and holds_on(condition.since, standing.since, subject.today)
        return holds is condition.is_

    def _ticket(self, condition: OfTicket, ticket: Ticket, today: date) -> bool | None:
        match condition:
            case OfStore(any_of=stores):
                return ticket.store_id in self._stores(stores)
            case OfCurrency(any_of=currencies):
                return ticket.currency in currencies
            case OfAmount(at_least_cents=low, at_most_cents=high):
                return _is_within(ticket.amount_cents, low, high)
            case OfProduct(any_of=products, property=asked):
                return any_of([self._passes(line, products, asked, today) for line in ticket.lines])

    def _sales(self, condition: OfSales, subject: Subject) -> tuple[bool | None, Saw]:
        """A line whose property cannot be read is tried both ways: where that changes the answer, it is not known."""
        asked, products, today = condition.property, condition.products, subject.today
        if not products and asked is None:
            return self._measure(condition, subject, None)
        holds, saw = self._measure(condition, subject, lambda line: self._passes(line, products, asked, today) is True)
        if asked is not None and (
            self._measure(condition, subject, lambda line: self._passes(line, products, asked, today) is not False)[0]
            is not holds
        ):
            return None, saw
        return holds, saw

    def _passes(self, line: Line, products: Collection[str], asked: Compared | None, today: date) -> bool | None:
        if line.properties is None or (products and line.product_id not in products):
            return False
        if asked is None:
            return True
        value, test = line.properties.get(asked.key), self._test(asked, today)
        return None if test is None else test(None if value is None else spell(value))

    def _measure(self, condition: OfSales, subject: Subject, passes: Passes) -> tuple[bool, SawOfSales]:
        sales = list(self._among(condition, subject, passes))
        match condition:
            case FirstPurchase(when=when) | LastPurchase(when=when):
                bought = [sale for sale in sales if sale.type == "PURCHASE"]
                end = 0 if isinstance(condition, FirstPurchase) else -1
                sale = bought[end] if bought else None
                day = None if sale is None else sale.day
                return holds_on(when, day, subject.today), SawDay(day, sale)
            case Spend(at_least_cents=least, at_most_cents=most):
                cents = spend_of(sales, condition.currency, passes)
                return _is_within(cents, least, most, none=condition.none), SawMoney(cents, condition.currency)
            case TicketValue(at_least_cents=least, at_most_cents=most):
                bought = [sale for sale in sales if sale.type == "PURCHASE" and sale.currency == condition.currency]
                values = [net_cents(sale, passes) for sale in bought]
                holds = any(_is_within(value, least, most) for value in values)
                return holds, SawMoney(max(values, default=None), condition.currency)
            case Bought(count="articles"):
                found = articles_of(sales, passes)
                low, high = (None if it is None else millionths(it) for it in (condition.at_least, condition.at_most))
                return _is_within(found, low, high, none=condition.none), SawArticles(Decimal(found).scaleb(-6))
            case Bought() | Returned():
                return _times(condition, sales)

    def _among(self, condition: OfSales, subject: Subject, passes: Passes) -> Iterator[Sale]:
        """The customer's sales in the window and the stores that have such a line, the earliest first."""
        window = None if isinstance(condition, FirstPurchase | LastPurchase) else condition.window
        first, last = days_of(window, subject.today)
        stores = self._stores(condition.stores)
        ticket_id = None if subject.ticket is None else subject.ticket.id
        for sale in subject.customer.sales:
            is_here = first <= sale.day <= last and (not condition.stores or sale.store_id in stores)
            if is_here and sale.id != ticket_id and is_among(sale, passes):
                yield sale

    def _stores(self, wanted: Collection[str]) -> set[UUID]:
        return {self.known.stores[store] for store in wanted if store in self.known.stores}


def combine(group: Group, inner: Collection[bool | None]) -> bool | None:
    match group:
        case All():
            return False if False in inner else None if None in inner else True
        case Any():
            return any_of(inner)
        case _:
            found = any_of(inner)
            return None if found is None else not found


def any_of(answers: Collection[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _texts(condition: Texts, subject: Subject) -> tuple[bool, Saw]:
    journey_id = None if condition.journey is None else JOURNEY.decode(condition.journey)
    days = [
        text.day
        for text in subject.customer.texts
        if 0 <= (subject.today - text.day).days < condition.days
        and (condition.journey is None or (journey_id is not None and text.journey_id == journey_id))
    ]
    return bool(days) is condition.got, SawTexts(len(days), max(days, default=None))


def _times(condition: OfTimes, sales: list[Sale]) -> tuple[bool, SawTimes]:
    wanted = "RETURN" if isinstance(condition, Returned) else "PURCHASE"
    found = [sale for sale in sales if sale.type == wanted]
    is_bare = condition.at_least is None and condition.at_most is None and not condition.none
    least = 1 if is_bare else condition.at_least
    holds = _is_within(len(found), least, condition.at_most, none=condition.none)
    return holds, SawTimes(len(found), found[-1] if found else None)


def _is_within(value: int, low: float | None, high: float | None, *, none: bool = False) -> bool:
    """*None* is no more than 0: a customer who only returned has bought nothing, net."""
    if none:
        return value <= 0
    return (low is None or value >= low) and (high is None or value <= high)
