"""Whether conditions hold for one customer, and what they saw. Plain, one customer at a time: what every faster way of
evaluating is held against."""

from collections.abc import Iterable
from decimal import Decimal
from uuid import UUID

from regulars.catalog.model import spell
from regulars.kit.ids import JOURNEY
from regulars.segments.definition import (
    All,
    Any,
    Articles,
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
    Nothing,
    OfAttribute,
    OfProperty,
    OfSales,
    OfTimes,
    Path,
    Returned,
    Spend,
    Texts,
    TicketValue,
)
from regulars.segments.explain.millionths import millionths
from regulars.segments.explain.model import (
    Customer,
    Explained,
    Line,
    Sale,
    Saw,
    SawArticles,
    SawConsent,
    SawCountry,
    SawDay,
    SawMoney,
    SawName,
    SawSegment,
    SawTexts,
    SawTimes,
    SawValue,
)
from regulars.segments.explain.netting import Passes, articles_of, is_among, net_cents, spend_of
from regulars.segments.kept.resolve import Resolved
from regulars.segments.order import innermost_first
from regulars.segments.values import ValueTest, days_of, holds_on


class Judge:
    """Judges customers by a segment; what is asked of several of them is made ready once."""

    def __init__(self, resolved: Resolved) -> None:
        self._resolved = resolved
        self._today = resolved.today
        self._tests: dict[OfAttribute | OfProperty, ValueTest | None] = {}
        others = {it: None if other.faults else other.definition.match for it, other in resolved.others.items()}
        self._others = [(it, inner) for it in innermost_first(resolved.match, others) if (inner := others[it])]
        # The customer who was met last, and in which of the other segments they are.
        self._customer: Customer | None = None
        self._inside: set[str] = set()

    def is_in(self, customer: Customer) -> bool:
        return not self._resolved.faults and self.explain(customer).holds

    def is_in_other(self, segment_id: str, customer: Customer) -> bool:
        """Whether they are in one of the segments that the segment asks for."""
        self._meet(customer)
        return segment_id in self._inside

    def explain(self, customer: Customer) -> Explained:
        """The tree as it would be if nothing was wrong with the definition; conditions with a fault do not hold."""
        self._meet(customer)
        return self._explain(self._resolved.match, (), customer)

    def _meet(self, customer: Customer) -> None:
        """Look into every other segment once, however often it is asked for."""
        if self._customer is customer:
            return
        self._customer, self._inside = customer, set()
        for segment_id, match in self._others:
            if self._explain(match, (), customer).holds:
                self._inside.add(segment_id)

    def _explain(self, condition: Condition, path: Path, customer: Customer) -> Explained:
        if isinstance(condition, Group):
            inner = tuple(self._explain(one, (*path, number), customer) for number, one in enumerate(condition.of))
            return Explained(path, condition, _combine(condition, [one.holds for one in inner]), None, inner)
        holds, saw = self._leaf(condition, customer)
        return Explained(path, condition, holds, saw)

    def _leaf(self, condition: Leaf, customer: Customer) -> tuple[bool, Saw | None]:
        match condition:
            case OfAttribute():
                return self._attribute(condition, customer)
            case Consent():
                return self._consent(condition, customer), SawConsent(customer.standing)
            case Texts():
                return self._texts(condition, customer)
            case Created(when=when):
                return holds_on(when, customer.created, self._today), SawDay(customer.created)
            case Named(is_=wanted):
                return customer.is_named is wanted, SawName(customer.is_named)
            case Country(any_of=several):
                return customer.country in several, SawCountry(customer.country)
            case InSegment(id=segment_id):
                return self._segment(segment_id)
            case _:
                return self._sales(condition, customer)

    def _attribute(self, condition: OfAttribute, customer: Customer) -> tuple[bool, Saw]:
        value = customer.attributes.get(condition.key)
        test = self._test(condition)
        if test is None:
            return False, SawValue(value)
        answer = test(value)
        return bool(answer), SawValue(value, is_readable=answer is not None)

    def _test(self, asked: OfAttribute | OfProperty) -> ValueTest | None:
        """None: the key is unknown, or its type does not offer the comparison."""
        if asked not in self._tests:
            self._tests[asked] = self._resolved.test_of(asked)
        return self._tests[asked]

    def _consent(self, condition: Consent, customer: Customer) -> bool:
        standing = customer.standing
        if standing.state != condition.state:
            return False
        if condition.sources and standing.source not in condition.sources:
            return False
        if condition.stores and standing.store_id not in self._stores(condition.stores):
            return False
        return condition.since is None or (
            standing.since is not None and holds_on(condition.since, standing.since, self._today)
        )

    def _texts(self, condition: Texts, customer: Customer) -> tuple[bool, Saw]:
        journey_id = None if condition.journey is None else JOURNEY.decode(condition.journey)
        days = [
            text.day
            for text in customer.texts
            if 0 <= (self._today - text.day).days <= condition.days
            and (condition.journey is None or (journey_id is not None and text.journey_id == journey_id))
        ]
        return bool(days) is condition.got, SawTexts(len(days), max(days, default=None))

    def _segment(self, segment_id: str) -> tuple[bool, Saw | None]:
        other = self._resolved.others.get(segment_id)
        if other is None:
            return False, None
        return segment_id in self._inside, SawSegment(other.name, other.version, is_faulty=bool(other.faults))

    def _sales(self, condition: OfSales, customer: Customer) -> tuple[bool, Saw]:
        passes = self._passes(condition)
        sales = list(self._among(condition, customer, passes))
        match condition:
            case FirstPurchase(when=when) | LastPurchase(when=when):
                bought = [sale for sale in sales if sale.type == "PURCHASE"]
                end = 0 if isinstance(condition, FirstPurchase) else -1
                sale = bought[end] if bought else None
                day = None if sale is None else sale.day
                return holds_on(when, day, self._today), SawDay(day, sale)
            case Spend(at_least_cents=least, at_most_cents=most):
                cents = spend_of(sales, condition.currency, passes)
                return _is_within(cents, least, most, none=condition.none), SawMoney(cents, condition.currency)
            case TicketValue(at_least_cents=least, at_most_cents=most):
                bought = [sale for sale in sales if sale.type == "PURCHASE" and sale.currency == condition.currency]
                values = [net_cents(sale, passes) for sale in bought]
                holds = any(_is_within(value, least, most) for value in values)
                return holds, SawMoney(max(values, default=None), condition.currency)
            case Articles(at_least=least_, at_most=most_):
                found = articles_of(sales, passes)
                low, high = (None if it is None else millionths(it) for it in (least_, most_))
                return _is_within(found, low, high, none=condition.none), SawArticles(Decimal(found).scaleb(-6))
            case _:
                return self._times(condition, sales)

    def _times(self, condition: OfTimes, sales: list[Sale]) -> tuple[bool, Saw]:
        wanted = "RETURN" if isinstance(condition, Returned) else "PURCHASE"
        found = [sale for sale in sales if sale.type == wanted]
        is_bare = condition.at_least is None and condition.at_most is None and not condition.none
        least = 1 if is_bare else condition.at_least
        holds = _is_within(len(found), least, condition.at_most, none=condition.none)
        return holds, SawTimes(len(found), found[-1] if found else None)

    def _among(self, condition: OfSales, customer: Customer, passes: Passes) -> Iterable[Sale]:
        """The customer's sales in the window and the stores that have such a line, the earliest first."""
        window = None if isinstance(condition, FirstPurchase | LastPurchase) else condition.window
        first, last = days_of(window, self._today)
        stores = self._stores(condition.stores)
        for sale in customer.sales:
            is_here = first <= sale.day <= last and (not condition.stores or sale.store_id in stores)
            if is_here and is_among(sale, passes):
                yield sale

    def _passes(self, condition: OfSales) -> Passes:
        if not condition.products and condition.property is None:
            return None
        products, asked = frozenset(condition.products), condition.property
        test = None if asked is None else self._test(asked)

        def passes(line: Line) -> bool:
            if line.properties is None or (products and line.product_id not in products):
                return False
            if asked is None:
                return True
            value = line.properties.get(asked.key)
            return test is not None and bool(test(None if value is None else spell(value)))

        return passes

    def _stores(self, wanted: tuple[str, ...]) -> set[UUID]:
        return {self._resolved.stores[store] for store in wanted if store in self._resolved.stores}


def _combine(group: Group, inner: list[bool]) -> bool:
    match group:
        case All():
            return all(inner)
        case Any():
            return any(inner)
        case Nothing():
            return not any(inner)


def _is_within(value: int, low: int | None, high: int | None, *, none: bool = False) -> bool:
    if none:
        return value == 0
    return (low is None or value >= low) and (high is None or value <= high)
