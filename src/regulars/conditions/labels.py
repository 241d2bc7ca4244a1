"""Describes conditions as sentences, for pages, commands, the traces of journeys, and differences between versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Protocol

from regulars.conditions.comparisons import NEGATIVE
from regulars.conditions.field_types import ValueComparison, When, Window

if TYPE_CHECKING:
    # The tree knows the kinds, and each kind describes itself with these labels.
    from regulars.conditions.tree import Condition

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

    def line(self, condition: "Condition") -> str:
        """A whole tree in one line, with groups in brackets."""
        return condition.line(self)

    def sentence(self, condition: "Condition") -> str:
        """Describe one condition; of a group only how it combines its inner conditions."""
        return condition.sentence(self)

    def window(self, window: Window | None) -> str:
        """Describe the days whose sales count."""
        if window is None:
            return ", at any time"
        if window.last_days is not None:
            return f" in the last {self.number(window.last_days)} days"
        if window.from_ is None or window.to is None:
            return ""
        return f" from {self.day(window.from_)} to {self.day(window.to)}"

    def stores(self, references: Sequence[str]) -> list[str]:
        return [self.names.stores.get(reference, reference) for reference in references]

    def comparison(self, compared: ValueComparison) -> str:
        sentence = f"{compared.key} {COMPARISONS[compared.comparison]}"
        if compared.comparison == "between":
            sentence += " " + " and ".join(self.text(value) for value in compared.values)
        elif compared.values:
            sentence += f" {self.list_first(compared.values)}"
        elif compared.value is not None:
            sentence += f" {self.text(compared.value)}"
        elif compared.days is not None:
            sentence += f" {self.number(compared.days)} days"
        if compared.comparison in NEGATIVE:
            sentence += ", or has no value" if compared.without_value else ""
        return sentence

    def when(self, when: When) -> str:
        match when.comparison:
            case "before" | "after":
                return "" if when.date is None else f" {when.comparison} {self.day(when.date)}"
            case "between":
                if when.from_ is None or when.to is None:
                    return ""
                return f" from {self.day(when.from_)} to {self.day(when.to)}"
            case "in_last_days" | "not_in_last_days":
                negation = " not" if when.comparison == "not_in_last_days" else ""
                return f"{negation} in the last {self.number(when.days or 0)} days"

    def number_limits(self, low: float | None, high: float | None) -> str:
        return self.limits(None if low is None else self.number(low), None if high is None else self.number(high))

    @staticmethod
    def limits(low: str | None, high: str | None) -> str:
        if low is not None and high is not None:
            return f"between {low} and {high}"
        return f"at least {low}" if low is not None else f"at most {high}"

    def money(self, cents: int | None, currency: str) -> str | None:
        if cents is None:
            return None
        return self.format.money(cents, currency) if self.shows_values else HIDDEN

    def number(self, value: float | Decimal) -> str:
        return self.format.number(value) if self.shows_values else HIDDEN

    def text(self, value: str) -> str:
        return value if self.shows_values else HIDDEN

    def list_first(self, values: Sequence[str]) -> str:
        if not self.shows_values:
            return HIDDEN
        if len(values) <= VALUES_SHOWN_MAX:
            return " or ".join(values)
        return f"{', '.join(values[:VALUES_SHOWN_MAX])} or {len(values) - VALUES_SHOWN_MAX} others"

    def day(self, day: date) -> str:
        return self.format.full_day(day) if self.shows_values else HIDDEN


def format_cents(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}" if cents >= 0 else f"-{format_cents(-cents)}"
