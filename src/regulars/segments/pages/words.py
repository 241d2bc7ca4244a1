"""Conditions as sentences, and what they saw of a customer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from regulars.segments.definition import (
    Articles,
    Condition,
    Consent,
    Country,
    Created,
    FirstPurchase,
    Group,
    InSegment,
    LastPurchase,
    Named,
    OfAttribute,
    OfProperty,
    OfSales,
    Returned,
    Spend,
    Texts,
    TicketValue,
    When,
    Window,
)
from regulars.segments.values import NEGATIVE
from regulars.web.format import Format

HIDDEN: Final = "…"
GROUPS: Final = {"all": "All of these", "any": "Any of these", "none": "None of these"}
COMPARISONS: Final = {
    "is": "is",
    "is_not": "is not",
    "contains": "contains",
    "starts_with": "starts with",
    "any_of": "is any of",
    "none_of": "is none of",
    "is_set": "has a value",
    "is_not_set": "has no value",
    "less": "is less than",
    "at_most": "is at most",
    "more": "is more than",
    "at_least": "is at least",
    "between": "is between",
    "is_true": "is true",
    "is_false": "is false",
    "before": "is before",
    "after": "is after",
    "in_last_days": "is in the last",
    "not_in_last_days": "is not in the last",
    "in_next_days": "is in the next",
    "anniversary_in_next_days": "has its anniversary in the next",
}
STATES: Final = {
    "may_be_texted": "May be texted",
    "withdrawn": "Withdrawn",
    "never_asked": "Never asked",
    "do_not_contact": "Do not contact",
}
KINDS: Final = {
    "attribute": "Attribute",
    "consent": "Texting",
    "bought": "Bought",
    "returned": "Returned",
    "spend": "Spent net",
    "articles": "Articles, net",
    "tickets": "Tickets",
    "ticket_value": "A ticket of",
    "first_purchase": "First purchase",
    "last_purchase": "Last purchase",
    "texts": "Texts",
    "created": "Customer since",
    "named": "Name",
    "country": "Number of",
    "segment": "In the segment",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What people call what a definition names by ids."""

    stores: Mapping[str, str] = field(default_factory=dict)
    segments: Mapping[str, str] = field(default_factory=dict)
    journeys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Words:
    """Sentences for one reader; without `constants` whatever somebody typed is left out."""

    format: Format
    names: Names
    constants: bool = True

    def sentence(self, condition: Condition) -> str:
        match condition:
            case OfAttribute():
                return self._comparison(condition)
            case Consent():
                return self._consent(condition)
            case Texts():
                asked = condition.journey
                journey = "" if asked is None else f" from {self.names.journeys.get(asked, asked)}"
                verb = "Got a text" if condition.got else "Got no text"
                return f"{verb}{journey} in the last {self._number(condition.days)} days"
            case Created(when=when):
                return f"Became a customer{self._when(when)}"
            case Named(is_=wanted):
                return "Known by name" if wanted else "Not known by name"
            case Country(any_of=several):
                return f"Number of {self._several(several)}"
            case InSegment(id=segment_id):
                return f"In the segment {self.names.segments.get(segment_id, segment_id)}"
            case _ if isinstance(condition, Group):
                return GROUPS[str(type(condition).__struct_config__.tag)]
            case _:
                return self._sales(condition)

    def window(self, window: Window | None) -> str:
        if window is None:
            return ", ever"
        if window.last_days is not None:
            return f" in the last {self._number(window.last_days)} days"
        if window.from_ is None or window.to is None:
            return ""
        return f" from {self._day(window.from_)} to {self._day(window.to)}"

    def among(self, condition: OfSales) -> str:
        """The stores and the products that sales are narrowed to."""
        parts = []
        if condition.products:
            parts.append(f" of {self._several(condition.products)}")
        if condition.property is not None:
            parts.append(f" where {self._comparison(condition.property)}")
        if condition.stores:
            stores = [self.names.stores.get(store, store) for store in condition.stores]
            parts.append(f" in {', '.join(stores)}")
        return "".join(parts)

    def _sales(self, condition: OfSales) -> str:
        among = self.among(condition)
        match condition:
            case FirstPurchase(when=when) | LastPurchase(when=when):
                which = "First" if isinstance(condition, FirstPurchase) else "Last"
                also = ", or never bought" if when.without_value else ""
                return f"{which} purchase{among}{self._when(when)}{also}"
            case Spend():
                low, high = condition.at_least_cents, condition.at_most_cents
                amount = self._bound(self._money(low, condition.currency), self._money(high, condition.currency))
                amount = f"nothing in {condition.currency}" if condition.none else amount
                return f"Spent net {amount}{among}{self.window(condition.window)}"
            case TicketValue():
                low, high = condition.at_least_cents, condition.at_most_cents
                amount = self._bound(self._money(low, condition.currency), self._money(high, condition.currency))
                return f"A ticket of {amount}{among}{self.window(condition.window)}"
            case Articles():
                count = "no" if condition.none else self._numbers(condition.at_least, condition.at_most)
                return f"Bought {count} articles net{among}{self.window(condition.window)}"
            case _:
                verb = "Returned" if isinstance(condition, Returned) else "Bought"
                if condition.none:
                    return f"{verb} nothing{among}{self.window(condition.window)}"
                is_bare = condition.at_least is None and condition.at_most is None
                times = self._numbers(1 if is_bare else condition.at_least, condition.at_most)
                return f"{verb} {times} times{among}{self.window(condition.window)}"

    def _comparison(self, asked: OfAttribute | OfProperty) -> str:
        words = f"{asked.key} {COMPARISONS[asked.comparison]}"
        if asked.comparison == "between":
            words += " " + " and ".join(self._text(value) for value in asked.values)
        elif asked.values:
            words += f" {self._several(asked.values)}"
        elif asked.value is not None:
            words += f" {self._text(asked.value)}"
        elif asked.days is not None:
            words += f" {self._number(asked.days)} days"
        if asked.comparison in NEGATIVE:
            words += ", or has no value" if asked.without_value else ""
        return words

    def _consent(self, condition: Consent) -> str:
        words = STATES[condition.state]
        if condition.sources:
            words += f" by {self._several(condition.sources)}"
        if condition.stores:
            words += " in " + ", ".join(self.names.stores.get(store, store) for store in condition.stores)
        return words if condition.since is None else words + self._when(condition.since)

    def _when(self, when: When) -> str:
        match when.comparison:
            case "before" | "after":
                return "" if when.date is None else f" {when.comparison} {self._day(when.date)}"
            case "between":
                if when.from_ is None or when.to is None:
                    return ""
                return f" from {self._day(when.from_)} to {self._day(when.to)}"
            case "in_last_days":
                return f" in the last {self._number(when.days or 0)} days"
            case "not_in_last_days":
                return f" not in the last {self._number(when.days or 0)} days"

    def _numbers(self, low: float | None, high: float | None) -> str:
        return self._bound(None if low is None else self._number(low), None if high is None else self._number(high))

    @staticmethod
    def _bound(low: str | None, high: str | None) -> str:
        if low is not None and high is not None:
            return f"between {low} and {high}"
        return f"at least {low}" if low is not None else f"at most {high}"

    def _money(self, cents: int | None, currency: str) -> str | None:
        if cents is None:
            return None
        return self.format.money(cents, currency) if self.constants else HIDDEN

    def _number(self, value: float | Decimal) -> str:
        return self.format.number(value) if self.constants else HIDDEN

    def _text(self, value: str) -> str:
        return value if self.constants else HIDDEN

    def _several(self, values: tuple[str, ...]) -> str:
        return ", ".join(values) if self.constants else HIDDEN

    def _day(self, day: object) -> str:
        return self.format.full_day(day) if self.constants else HIDDEN  # type: ignore[arg-type]  # dates only
