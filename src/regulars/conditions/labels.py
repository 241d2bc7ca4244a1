"""Describes conditions as sentences, for pages, commands, the traces of journeys, and differences between versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Final, Protocol

from regulars.conditions import tree
from regulars.conditions.comparisons import NEGATIVE

# Replaces a compared value that the reader may not see.
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
    "before": "is before",
    "after": "is after",
    "in_last_days": "is in the last",
    "not_in_last_days": "is not in the last",
    "in_next_days": "is in the next",
    "anniversary_in_next_days": "has its anniversary in the next",
}
STATES: Final = {
    "may_be_texted": "May be texted",
    "withdrawn": "Opted out",
    "never_asked": "Never asked",
    "do_not_contact": "Do not contact",
}
NOT_STATES: Final = {
    "may_be_texted": "May not be texted",
    "withdrawn": "Has not opted out",
    "never_asked": "Was asked for consent",
    "do_not_contact": "Is not “do not contact”",
}
# How a customer opted in.
SOURCES: Final = {
    "LOYALTY_PROGRAM": "Loyalty programme",
    "POINT_OF_SALE": "Point of sale",
    "WEBSITE": "Website",
    "CHECKOUT": "Checkout",
    "MOBILE_APP": "Mobile app",
    "SMS_KEYWORD": "Reply by text",
    "QR_CODE": "QR code",
    "CALL_CENTER": "Call centre",
    "PAPER_FORM": "Paper form",
    "EVENT": "Event",
    "SOCIAL": "Social network",
    "IMPORT": "Import",
    "OTHER": "Other",
}
# The kinds of conditions on customers and their sales, with their labels in forms.
KINDS: Final = {
    "attribute": "Attribute",
    "consent": "Consent",
    "bought": "Bought",
    "purchase_days": "Purchase days",
    "returned": "Returned",
    "spend": "Net spend",
    "articles": "Articles bought",
    "ticket_value": "Ticket value",
    "first_purchase": "First purchase",
    "last_purchase": "Last purchase",
    "texts": "Texts received",
    "received_campaign": "Received the campaign",
    "created": "Became a customer",
    "named": "Name",
    "country": "Phone number from",
    "segment": "Other segment",
}
# Conditions on the ticket that triggered a journey.
TICKET_KINDS: Final = {"amount": "Amount", "currency": "Currency", "store": "Store", "product": "Product"}
VALUES_SHOWN_MAX: Final = 3


class ValueFormat(Protocol):
    """Formats values in a user's language."""

    def number(self, value: float | Decimal) -> str: ...
    def money(self, cents: int, currency: str) -> str: ...
    def full_day(self, value: date) -> str: ...


class PlainFormat:
    """The same format for all users: for commands and stored text."""

    def number(self, value: float | Decimal) -> str:
        return str(value)

    def money(self, cents: int, currency: str) -> str:
        return f"{format_cents(cents)} {currency}"

    def full_day(self, value: date) -> str:
        return value.isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of the objects that a definition refers to by id."""

    stores: Mapping[str, str] = field(default_factory=dict)
    segments: Mapping[str, str] = field(default_factory=dict)
    journeys: Mapping[str, str] = field(default_factory=dict)
    campaigns: Mapping[str, str] = field(default_factory=dict)
    countries: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Labels:
    """Describes conditions as sentences for one user; without `shows_values`, "…" replaces the compared values."""

    format: ValueFormat = field(default_factory=PlainFormat)
    names: Names = field(default_factory=Names)
    shows_values: bool = True

    def line(self, condition: tree.Condition) -> str:
        """A whole tree in one line, with groups in brackets."""
        match condition:
            case tree.All(of=conditions):
                return self._join(conditions, " and ")
            case tree.Any(of=conditions):
                return self._join(conditions, " or ")
            case tree.Nothing(of=conditions):
                return f"none of: {self._join(conditions, ' or ')}"
            case tree.OfAttribute():
                return self.sentence(condition)
            case _:
                sentence = self.sentence(condition)
                return sentence[:1].lower() + sentence[1:]

    def _join(self, conditions: tuple[tree.Condition, ...], word: str) -> str:
        lines = [(condition, self.line(condition)) for condition in conditions]
        labels = [f"({line})" if isinstance(condition, tree.All | tree.Any) else line for condition, line in lines]
        return word.join(labels) or "nothing"

    def sentence(self, condition: tree.Condition) -> str:
        """Describe one condition; of a group only how it combines its inner conditions."""
        match condition:
            case tree.OfAttribute():
                return self._comparison(condition)
            case tree.Consent():
                return self._consent(condition)
            case tree.Texts() | tree.ReceivedCampaign():
                return self._texts(condition)
            case tree.Created(when=when):
                return f"Became a customer{self._when(when)}"
            case tree.Named(is_=expected):
                return "Known by name" if expected else "Not known by name"
            case tree.Country(any_of=countries):
                names = [self.names.countries.get(code, code) for code in countries]
                return f"Phone number from {self._list_first(names)}"
            case tree.InSegment(id=segment_id, is_=expected):
                verb = "In" if expected else "Not in"
                return f"{verb} the segment {self.names.segments.get(segment_id, segment_id)}"
            case _ if isinstance(condition, tree.Group):
                return GROUPS[tree.kind_of(condition)]
            case _ if isinstance(condition, tree.TicketCondition):
                return self._ticket(condition)
            case _:
                return self._sales(condition)

    def _texts(self, condition: tree.Texts | tree.ReceivedCampaign) -> str:
        if isinstance(condition, tree.ReceivedCampaign):
            verb = "Received" if condition.is_ else "Did not receive"
            return f"{verb} the campaign {self.names.campaigns.get(condition.id, condition.id)}"
        journey_id = condition.journey
        journey = "" if journey_id is None else f" from {self.names.journeys.get(journey_id, journey_id)}"
        verb = "Got a text" if condition.got else "Got no text"
        return f"{verb}{journey} in the last {self._number(condition.days)} days"

    def _ticket(self, condition: tree.TicketCondition) -> str:
        match condition:
            case tree.OfStore(any_of=stores):
                return f"The ticket is of {self._list_first([self.names.stores.get(each, each) for each in stores])}"
            case tree.OfAmount(at_least_cents=low, at_most_cents=high):
                limits = [None if cents is None else self._text(format_cents(cents)) for cents in (low, high)]
                return f"The ticket is {self._limits(*limits) if any(limits) else 'of any amount'}"
            case tree.OfCurrency(any_of=currencies):
                return f"Paid in {' or '.join(currencies)}"
            case tree.OfProduct(any_of=products, property=compared):
                of = f" of {self._list_first(products)}" if products else ""
                where = "" if compared is None else f" where {self._comparison(compared)}"
                return f"The ticket has a product{of}{where}"

    def window(self, window: tree.Window | None) -> str:
        """Describe the days whose sales count."""
        if window is None:
            return ", at any time"
        if window.last_days is not None:
            return f" in the last {self._number(window.last_days)} days"
        if window.from_ is None or window.to is None:
            return ""
        return f" from {self._day(window.from_)} to {self._day(window.to)}"

    def sales_filter(self, condition: tree.SalesCondition) -> str:
        """Describe the filter of sales by store and product."""
        parts = []
        if condition.products:
            parts.append(f" of {self._list_first(condition.products)}")
        if condition.property is not None:
            parts.append(f" where {self._comparison(condition.property)}")
        if condition.stores:
            stores = [self.names.stores.get(store, store) for store in condition.stores]
            parts.append(f" in {', '.join(stores)}")
        return "".join(parts)

    def _sales(self, condition: tree.SalesCondition) -> str:
        filter_text = self.sales_filter(condition)
        match condition:
            case tree.FirstPurchase(when=when) | tree.LastPurchase(when=when):
                ordinal = "First" if isinstance(condition, tree.FirstPurchase) else "Last"
                or_never = ", or never bought" if when.without_value else ""
                return f"{ordinal} purchase{filter_text}{self._when(when)}{or_never}"
            case tree.Spend(none=True):
                return f"Spent nothing in {condition.currency}{filter_text}{self.window(condition.window)}"
            case tree.Spend() | tree.TicketValue():
                limits = condition.at_least_cents, condition.at_most_cents
                amount = self._limits(*(self._money(cents, condition.currency) for cents in limits))
                subject = "Net spend" if isinstance(condition, tree.Spend) else "A ticket of"
                return f"{subject} {amount}{filter_text}{self.window(condition.window)}"
            case tree.Bought(count="articles"):
                count = "no" if condition.none else self._number_limits(condition.at_least, condition.at_most)
                return f"Bought {count} articles minus returns{filter_text}{self.window(condition.window)}"
            case _:
                verb = "Returned" if isinstance(condition, tree.Returned) else "Bought"
                if condition.none:
                    return f"{verb} nothing{filter_text}{self.window(condition.window)}"
                has_no_limit = condition.at_least is None and condition.at_most is None
                times = self._number_limits(1 if has_no_limit else condition.at_least, condition.at_most)
                count = f"on {times} days" if tree.counts_days(condition) else f"{times} times"
                return f"{verb} {count}{filter_text}{self.window(condition.window)}"

    def _comparison(self, compared: tree.ValueComparison) -> str:
        sentence = f"{compared.key} {COMPARISONS[compared.comparison]}"
        if compared.comparison == "between":
            sentence += " " + " and ".join(self._text(value) for value in compared.values)
        elif compared.values:
            sentence += f" {self._list_first(compared.values)}"
        elif compared.value is not None:
            sentence += f" {self._text(compared.value)}"
        elif compared.days is not None:
            sentence += f" {self._number(compared.days)} days"
        if compared.comparison in NEGATIVE:
            sentence += ", or has no value" if compared.without_value else ""
        return sentence

    def _consent(self, condition: tree.Consent) -> str:
        sentence = (STATES if condition.is_ else NOT_STATES)[condition.state]
        if condition.sources:
            sources = [SOURCES.get(source, source) for source in condition.sources]
            sentence += f", source {self._list_first(sources)}"
        if condition.stores:
            sentence += ", store " + " or ".join(self.names.stores.get(store, store) for store in condition.stores)
        return sentence if condition.since is None else sentence + self._when(condition.since)

    def _when(self, when: tree.When) -> str:
        match when.comparison:
            case "before" | "after":
                return "" if when.date is None else f" {when.comparison} {self._day(when.date)}"
            case "between":
                if when.from_ is None or when.to is None:
                    return ""
                return f" from {self._day(when.from_)} to {self._day(when.to)}"
            case "in_last_days" | "not_in_last_days":
                negation = " not" if when.comparison == "not_in_last_days" else ""
                return f"{negation} in the last {self._number(when.days or 0)} days"

    def _number_limits(self, low: float | None, high: float | None) -> str:
        return self._limits(None if low is None else self._number(low), None if high is None else self._number(high))

    @staticmethod
    def _limits(low: str | None, high: str | None) -> str:
        if low is not None and high is not None:
            return f"between {low} and {high}"
        return f"at least {low}" if low is not None else f"at most {high}"

    def _money(self, cents: int | None, currency: str) -> str | None:
        if cents is None:
            return None
        return self.format.money(cents, currency) if self.shows_values else HIDDEN

    def _number(self, value: float | Decimal) -> str:
        return self.format.number(value) if self.shows_values else HIDDEN

    def _text(self, value: str) -> str:
        return value if self.shows_values else HIDDEN

    def _list_first(self, values: Sequence[str]) -> str:
        if not self.shows_values:
            return HIDDEN
        if len(values) <= VALUES_SHOWN_MAX:
            return " or ".join(values)
        return f"{', '.join(values[:VALUES_SHOWN_MAX])} or {len(values) - VALUES_SHOWN_MAX} others"

    def _day(self, day: date) -> str:
        return self.format.full_day(day) if self.shows_values else HIDDEN


def format_cents(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}" if cents >= 0 else f"-{format_cents(-cents)}"
