"""Evaluates conditions for one customer: whether they are true, and the customer's values that decided it.

Segments are counted by a faster evaluation of all customers together; tests compare its results with this module.

There are three results: true, false, and unknown (None), when a value cannot be parsed as the declared type. A group
whose result depends on an unknown condition is unknown too, even *none*. The caller checks the definition for faults
first (`check.py`) and does not evaluate a definition with a fault.
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
    """The customer and the day for which conditions are evaluated. `segments` says of each segment whether the customer
    is a member; None if that is unknown. `ticket` is the sale that triggered a journey."""

    customer: customers.Customer
    today: date
    segments: Mapping[str, bool | None] = {}
    ticket: customers.Ticket | None = None


class Evaluator:
    """Evaluates conditions; each `ValueTest` is created once and used for all customers."""

    def __init__(self, context: ConditionContext) -> None:
        self.context = context
        self._tests: dict[tuple[tree.ValueComparison, date], ValueTest | None] = {}
        matches = {key: None if segment.faults else segment.match for key, segment in context.segments.items()}
        all_segments = tree.All(of=tuple(tree.InSegment(id=key) for key in matches))
        order = tree.order_referenced_segments(all_segments, matches)
        self._segments = [(key, match) for key in order if (match := matches[key]) is not None]

    def find_segments(self, customer: customers.Customer, today: date) -> dict[str, bool | None]:
        """Evaluate each segment of the context once: whether the customer is a member."""
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
            inner = tuple(self.explain(child, subject, (*path, index)) for index, child in enumerate(condition.of))
            return customers.ConditionExplanation(
                path, condition, combine(condition, [child.holds for child in inner]), None, inner
            )
        holds, observation = self._explain_leaf(condition, subject)
        return customers.ConditionExplanation(path, condition, holds, observation)

    def _explain_leaf(self, condition: tree.Leaf, subject: Subject) -> tuple[bool | None, customers.Observation | None]:
        customer, today = subject.customer, subject.today
        match condition:
            case tree.OfAttribute():
                return self._test_value(condition, subject)
            case tree.Consent():
                return self._matches_consent(condition, subject), customers.ObservedConsent(customer.consent)
            case tree.Texts():
                return _explain_texts(condition, subject)
            case tree.ReceivedCampaign(id=campaign, is_=expected):
                is_received = CAMPAIGN.decode(campaign) in customer.campaigns
                return is_received is expected, customers.ObservedCampaign(is_received)
            case tree.Created(when=when):
                return holds_on(when, customer.created, today), customers.ObservedDay(customer.created)
            case tree.Named(is_=expected):
                return customer.is_named is expected, customers.ObservedName(customer.is_named)
            case tree.Country(any_of=countries):
                return customer.country in countries, customers.ObservedCountry(customer.country)
            case tree.InSegment(id=segment_id, is_=expected):
                is_in = subject.segments.get(segment_id)
                return None if is_in is None else is_in is expected, self._observe_segment(segment_id)
            case _ if isinstance(condition, tree.TicketCondition):
                holds = None if subject.ticket is None else self._matches_ticket(condition, subject.ticket, today)
                return holds, customers.ObservedTicket(subject.ticket)
            case _:
                return self._explain_sales(condition, subject)

    def _observe_segment(self, segment_id: str) -> customers.ObservedSegment | None:
        segment = self.context.segments.get(segment_id)
        if segment is None:
            return None
        return customers.ObservedSegment(segment.name, segment.version, is_faulty=bool(segment.faults))

    def _test_value(self, condition: tree.OfAttribute, subject: Subject) -> tuple[bool | None, customers.Observation]:
        value = subject.customer.attributes.get(condition.key)
        test = self._find_test(condition, subject.today)
        if test is None:
            return None, customers.ObservedValue(value)
        holds = test(value)
        return holds, customers.ObservedValue(value, is_parsable=holds is not None)

    def _find_test(self, compared: tree.ValueComparison, today: date) -> ValueTest | None:
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

    def _matches_consent(self, condition: tree.Consent, subject: Subject) -> bool:
        consent = subject.customer.consent
        holds = consent.state == condition.state
        if condition.sources:
            holds &= consent.source in condition.sources
        if condition.stores:
            holds &= consent.store_id in self._store_ids(condition.stores)
        if condition.since is not None:
            holds &= consent.since is not None and holds_on(condition.since, consent.since, subject.today)
        return holds is condition.is_

    def _matches_ticket(self, condition: tree.TicketCondition, ticket: customers.Ticket, today: date) -> bool | None:
        match condition:
            case tree.OfStore(any_of=stores):
                return ticket.store_id in self._store_ids(stores)
            case tree.OfCurrency(any_of=currencies):
                return ticket.currency in currencies
            case tree.OfAmount(at_least_cents=low, at_most_cents=high):
                return _is_within(ticket.amount_cents, low, high)
            case tree.OfProduct(any_of=products, property=compared):
                return any_of([self._matches_line(line, products, compared, today) for line in ticket.lines])

    def _explain_sales(
        self, condition: tree.SalesCondition, subject: Subject
    ) -> tuple[bool | None, customers.Observation]:
        """If the property of a line cannot be parsed, the condition is evaluated twice, with the line as a match and
        without it; if the results differ, the result is unknown. With a comparison that the type does not allow, it is
        unknown for every customer."""
        compared, products, today = condition.property, condition.products, subject.today
        if not products and compared is None:
            return self._measure_sales(condition, subject, None)

        def matches(line: customers.SaleLine) -> bool | None:
            return self._matches_line(line, products, compared, today)

        holds, observation = self._measure_sales(condition, subject, lambda line: matches(line) is True)
        if compared is None:
            return holds, observation
        if self._find_test(compared, today) is None:
            return None, observation
        holds_with_unparsed, _ = self._measure_sales(condition, subject, lambda line: matches(line) is not False)
        return holds if holds_with_unparsed is holds else None, observation

    def _matches_line(
        self, line: customers.SaleLine, products: Collection[str], compared: tree.ValueComparison | None, today: date
    ) -> bool | None:
        if line.properties is None or (products and line.product_id not in products):
            return False
        if compared is None:
            return True
        # A property is compared as text.
        value, test = line.properties.get(compared.key), self._find_test(compared, today)
        return None if test is None else test(None if value is None else spell(value))

    def _measure_sales(
        self, condition: tree.SalesCondition, subject: Subject, line_filter: customers.LineFilter
    ) -> tuple[bool, customers.ObservedSales]:
        sales = list(self._find_sales(condition, subject, line_filter))
        match condition:
            case tree.FirstPurchase(when=when) | tree.LastPurchase(when=when):
                bought = [sale for sale in sales if sale.type == "PURCHASE"]
                index = 0 if isinstance(condition, tree.FirstPurchase) else -1
                sale = bought[index] if bought else None
                day = None if sale is None else sale.day
                return holds_on(when, day, subject.today), customers.ObservedDay(day, sale)
            case tree.Spend(at_least_cents=low, at_most_cents=high):
                cents = customers.spend_of(sales, condition.currency, line_filter)
                return _is_within(cents, low, high, none=condition.none), customers.ObservedMoney(
                    cents, condition.currency
                )
            case tree.TicketValue(at_least_cents=low, at_most_cents=high):
                bought = [sale for sale in sales if sale.type == "PURCHASE" and sale.currency == condition.currency]
                values = [customers.net_cents(sale, line_filter) for sale in bought]
                holds = any(_is_within(value, low, high) for value in values)
                return holds, customers.ObservedMoney(max(values, default=None), condition.currency)
            case tree.Bought(count="articles"):
                articles = customers.articles_of(sales, line_filter)
                limits = condition.at_least, condition.at_most
                low, high = (None if limit is None else millionths(limit) for limit in limits)
                # From millionths.
                observation = customers.ObservedArticles(Decimal(articles).scaleb(-6))
                return _is_within(articles, low, high, none=condition.none), observation
            case tree.Bought() | tree.Returned():
                return _count(condition, sales)

    def _find_sales(
        self, condition: tree.SalesCondition, subject: Subject, line_filter: customers.LineFilter
    ) -> Iterator[customers.CustomerSale]:
        """The customer's sales in the window and stores that have a matching line, earliest first."""
        window = None if isinstance(condition, tree.FirstPurchase | tree.LastPurchase) else condition.window
        first, last = days_of(window, subject.today)
        stores = self._store_ids(condition.stores)
        ticket_id = None if subject.ticket is None else subject.ticket.id
        for sale in subject.customer.sales:
            is_counted = first <= sale.day <= last and (not condition.stores or sale.store_id in stores)
            if is_counted and sale.id != ticket_id and customers.has_matching_line(sale, line_filter):
                yield sale

    def _store_ids(self, stores: Collection[str]) -> set[UUID]:
        return {self.context.stores[store] for store in stores if store in self.context.stores}


def combine(group: tree.Group, inner: Collection[bool | None]) -> bool | None:
    match group:
        case tree.All():
            return False if False in inner else None if None in inner else True
        case tree.Any():
            return any_of(inner)
        case _:
            any_holds = any_of(inner)
            return None if any_holds is None else not any_holds


def any_of(results: Collection[bool | None]) -> bool | None:
    return True if True in results else None if None in results else False


def _explain_texts(condition: tree.Texts, subject: Subject) -> tuple[bool, customers.Observation]:
    journey_id = None if condition.journey is None else JOURNEY.decode(condition.journey)
    days = [
        text.day
        for text in subject.customer.texts
        if 0 <= (subject.today - text.day).days < condition.days
        and (condition.journey is None or (journey_id is not None and text.journey_id == journey_id))
    ]
    return bool(days) is condition.got, customers.ObservedTexts(len(days), max(days, default=None))


def _count(condition: tree.CountCondition, sales: list[customers.CustomerSale]) -> tuple[bool, customers.ObservedTimes]:
    """Count the matching sales, or the days with a matching sale."""
    sale_type = "RETURN" if isinstance(condition, tree.Returned) else "PURCHASE"
    matching = [sale for sale in sales if sale.type == sale_type]
    has_no_limit = condition.at_least is None and condition.at_most is None and not condition.none
    low = 1 if has_no_limit else condition.at_least
    times = len({sale.day for sale in matching}) if tree.counts_days(condition) else len(matching)
    holds = _is_within(times, low, condition.at_most, none=condition.none)
    return holds, customers.ObservedTimes(times, matching[-1] if matching else None)


def _is_within(value: int, low: float | None, high: float | None, *, none: bool = False) -> bool:
    """Whether a value is within the limits. `none` means at most 0, since the net of a customer with only returns is
    below 0."""
    if none:
        return value <= 0
    return (low is None or value >= low) and (high is None or value <= high)
