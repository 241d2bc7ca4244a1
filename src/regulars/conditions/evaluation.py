"""Evaluates conditions for one customer: whether they are true, and the values that they observed.

It evaluates one customer at a time, and is the reference for the tests of faster evaluations.

There are three results: true, false, and unknown (None), when the declared type cannot read a value. A group
whose result depends on an unknown condition is unknown too, even *none*. The caller checks the definition for faults
first (`check.py`) and does not evaluate one with a fault.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from regulars.catalog.model import spell
from regulars.conditions import customers, tree
from regulars.conditions.check import ConditionContext, is_valid_comparison
from regulars.conditions.comparisons import ValueTest, days_of, holds_on
from regulars.kit.ids import CAMPAIGN, JOURNEY
from regulars.sales.model import millionths


class Subject(NamedTuple):
    """The customer and the day. `segments` says for each segment whether the customer is in it; None if it is
    unknown."""

    customer: customers.Customer
    today: date
    segments: Mapping[str, bool | None] = {}
    ticket: customers.Ticket | None = None


class Evaluator:
    """Evaluates conditions for customers; the tests of values are created once and used for all customers."""

    def __init__(self, context: ConditionContext) -> None:
        self.context = context
        self._tests: dict[tuple[tree.ValueComparison, date], ValueTest | None] = {}
        matches = {segment_id: None if it.faults else it.match for segment_id, it in context.segments.items()}
        all_segments = tree.All(of=tuple(tree.InSegment(id=segment_id) for segment_id in matches))
        self._segments = [
            (it, match) for it in tree.innermost_first(all_segments, matches) if (match := matches[it]) is not None
        ]

    def find_segments(self, customer: customers.Customer, today: date) -> dict[str, bool | None]:
        """Whether the customer is in each of the known segments; each segment is evaluated once."""
        memberships: dict[str, bool | None] = {}
        for segment_id, match in self._segments:
            memberships[segment_id] = self.holds(match, Subject(customer, today, memberships))
        return memberships

    def holds(self, condition: tree.Condition, subject: Subject) -> bool | None:
        return self.explain(condition, subject).holds

    def explain(
        self, condition: tree.Condition, subject: Subject, path: tree.Path = ()
    ) -> customers.ConditionExplanation:
        if isinstance(condition, tree.Group):
            inner = tuple(self.explain(each, subject, (*path, index)) for index, each in enumerate(condition.of))
            return customers.ConditionExplanation(
                path, condition, combine(condition, [each.holds for each in inner]), None, inner
            )
        holds, observation = self._leaf(condition, subject)
        return customers.ConditionExplanation(path, condition, holds, observation)

    def _leaf(self, condition: tree.Leaf, subject: Subject) -> tuple[bool | None, customers.Observation | None]:
        customer, today = subject.customer, subject.today
        match condition:
            case tree.OfAttribute():
                return self._attribute(condition, subject)
            case tree.Consent():
                return self._consent(condition, subject), customers.ObservedConsent(customer.consent)
            case tree.Texts():
                return _texts(condition, subject)
            case tree.ReceivedCampaign(id=campaign, is_=wanted):
                is_received = CAMPAIGN.decode(campaign) in customer.campaigns
                return is_received is wanted, customers.ObservedCampaign(is_received)
            case tree.Created(when=when):
                return holds_on(when, customer.created, today), customers.ObservedDay(customer.created)
            case tree.Named(is_=wanted):
                return customer.is_named is wanted, customers.ObservedName(customer.is_named)
            case tree.Country(any_of=several):
                return customer.country in several, customers.ObservedCountry(customer.country)
            case tree.InSegment(id=segment_id, is_=wanted):
                is_in = subject.segments.get(segment_id)
                return None if is_in is None else is_in is wanted, self._segment(segment_id)
            case _ if isinstance(condition, tree.OfTicket):
                holds = None if subject.ticket is None else self._ticket(condition, subject.ticket, today)
                return holds, customers.ObservedTicket(subject.ticket)
            case _:
                return self._sales(condition, subject)

    def _segment(self, segment_id: str) -> customers.ObservedSegment | None:
        context = self.context.segments.get(segment_id)
        return (
            None
            if context is None
            else customers.ObservedSegment(context.name, context.version, is_faulty=bool(context.faults))
        )

    def _attribute(self, condition: tree.OfAttribute, subject: Subject) -> tuple[bool | None, customers.Observation]:
        value = subject.customer.attributes.get(condition.key)
        test = self._test(condition, subject.today)
        if test is None:
            return None, customers.ObservedValue(value)
        holds = test(value)
        return holds, customers.ObservedValue(value, is_readable=holds is not None)

    def _test(self, compared: tree.ValueComparison, today: date) -> ValueTest | None:
        """The test of a comparison; None if the key is unknown, or if its type does not allow the comparison."""
        if (compared, today) not in self._tests:
            context = self.context
            types = context.attributes if isinstance(compared, tree.OfAttribute) else context.properties
            test = None
            if is_valid_comparison(compared, types):
                declared, allowed = types[compared.key]
                test = ValueTest(compared, declared=declared, allowed_values=allowed, today=today, zone=context.zone)
            self._tests[compared, today] = test
        return self._tests[compared, today]

    def _consent(self, condition: tree.Consent, subject: Subject) -> bool:
        consent = subject.customer.consent
        holds = consent.state == condition.state
        if condition.sources:
            holds &= consent.source in condition.sources
        if condition.stores:
            holds &= consent.store_id in self._stores(condition.stores)
        if condition.since is not None:
            holds &= consent.since is not None and holds_on(condition.since, consent.since, subject.today)
        return holds is condition.is_

    def _ticket(self, condition: tree.OfTicket, ticket: customers.Ticket, today: date) -> bool | None:
        match condition:
            case tree.OfStore(any_of=stores):
                return ticket.store_id in self._stores(stores)
            case tree.OfCurrency(any_of=currencies):
                return ticket.currency in currencies
            case tree.OfAmount(at_least_cents=low, at_most_cents=high):
                return _is_within(ticket.amount_cents, low, high)
            case tree.OfProduct(any_of=products, property=compared):
                return any_of([self._passes(line, products, compared, today) for line in ticket.lines])

    def _sales(self, condition: tree.OfSales, subject: Subject) -> tuple[bool | None, customers.Observation]:
        """If the property of a line cannot be parsed, the condition is evaluated twice, with the line as a match and
        without it; if the results differ, the result is unknown."""
        compared, products, today = condition.property, condition.products, subject.today
        if not products and compared is None:
            return self._measure(condition, subject, None)
        holds, observation = self._measure(
            condition, subject, lambda line: self._passes(line, products, compared, today) is True
        )
        if compared is not None and (
            self._measure(condition, subject, lambda line: self._passes(line, products, compared, today) is not False)[
                0
            ]
            is not holds
        ):
            return None, observation
        return holds, observation

    def _passes(
        self, line: customers.SaleLine, products: Collection[str], compared: tree.ValueComparison | None, today: date
    ) -> bool | None:
        if line.properties is None or (products and line.product_id not in products):
            return False
        if compared is None:
            return True
        value, test = line.properties.get(compared.key), self._test(compared, today)
        return None if test is None else test(None if value is None else spell(value))

    def _measure(
        self, condition: tree.OfSales, subject: Subject, passes: customers.Passes
    ) -> tuple[bool, customers.ObservedSales]:
        sales = list(self._find_sales(condition, subject, passes))
        match condition:
            case tree.FirstPurchase(when=when) | tree.LastPurchase(when=when):
                bought = [sale for sale in sales if sale.type == "PURCHASE"]
                end = 0 if isinstance(condition, tree.FirstPurchase) else -1
                sale = bought[end] if bought else None
                day = None if sale is None else sale.day
                return holds_on(when, day, subject.today), customers.ObservedDay(day, sale)
            case tree.Spend(at_least_cents=least, at_most_cents=most):
                cents = customers.spend_of(sales, condition.currency, passes)
                return _is_within(cents, least, most, none=condition.none), customers.ObservedMoney(
                    cents, condition.currency
                )
            case tree.TicketValue(at_least_cents=least, at_most_cents=most):
                bought = [sale for sale in sales if sale.type == "PURCHASE" and sale.currency == condition.currency]
                values = [customers.net_cents(sale, passes) for sale in bought]
                holds = any(_is_within(value, least, most) for value in values)
                return holds, customers.ObservedMoney(max(values, default=None), condition.currency)
            case tree.Bought(count="articles"):
                articles = customers.articles_of(sales, passes)
                low, high = (None if it is None else millionths(it) for it in (condition.at_least, condition.at_most))
                return _is_within(articles, low, high, none=condition.none), customers.ObservedArticles(
                    Decimal(articles).scaleb(-6)
                )
            case tree.Bought() | tree.Returned():
                return _times(condition, sales)

    def _find_sales(
        self, condition: tree.OfSales, subject: Subject, passes: customers.Passes
    ) -> Iterator[customers.CustomerSale]:
        """The customer's sales in the window and stores that have a wanted line, earliest first."""
        window = None if isinstance(condition, tree.FirstPurchase | tree.LastPurchase) else condition.window
        first, last = days_of(window, subject.today)
        stores = self._stores(condition.stores)
        ticket_id = None if subject.ticket is None else subject.ticket.id
        for sale in subject.customer.sales:
            is_here = first <= sale.day <= last and (not condition.stores or sale.store_id in stores)
            if is_here and sale.id != ticket_id and customers.is_among(sale, passes):
                yield sale

    def _stores(self, wanted: Collection[str]) -> set[UUID]:
        return {self.context.stores[store] for store in wanted if store in self.context.stores}


def combine(group: tree.Group, inner: Collection[bool | None]) -> bool | None:
    match group:
        case tree.All():
            return False if False in inner else None if None in inner else True
        case tree.Any():
            return any_of(inner)
        case _:
            any_holds = any_of(inner)
            return None if any_holds is None else not any_holds


def any_of(answers: Collection[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _texts(condition: tree.Texts, subject: Subject) -> tuple[bool, customers.Observation]:
    journey_id = None if condition.journey is None else JOURNEY.decode(condition.journey)
    days = [
        text.day
        for text in subject.customer.texts
        if 0 <= (subject.today - text.day).days < condition.days
        and (condition.journey is None or (journey_id is not None and text.journey_id == journey_id))
    ]
    return bool(days) is condition.got, customers.ObservedTexts(len(days), max(days, default=None))


def _times(condition: tree.OfTimes, sales: list[customers.CustomerSale]) -> tuple[bool, customers.ObservedTimes]:
    wanted = "RETURN" if isinstance(condition, tree.Returned) else "PURCHASE"
    found = [sale for sale in sales if sale.type == wanted]
    is_bare = condition.at_least is None and condition.at_most is None and not condition.none
    least = 1 if is_bare else condition.at_least
    times = len({sale.day for sale in found}) if tree.is_of_days(condition) else len(found)
    holds = _is_within(times, least, condition.at_most, none=condition.none)
    return holds, customers.ObservedTimes(times, found[-1] if found else None)


def _is_within(value: int, low: float | None, high: float | None, *, none: bool = False) -> bool:
    """Whether a value is within the limits. `none` means at most 0, since the net of a customer with only returns is
    below 0."""
    if none:
        return value <= 0
    return (low is None or value >= low) and (high is None or value <= high)
