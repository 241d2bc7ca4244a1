"""The types of the fields that several kinds of conditions have."""

import datetime as dt
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

PropertyKey = Annotated[str, Meta(min_length=1, max_length=2_000)]
Values = Annotated[tuple[str, ...], Meta(max_length=200)]
Reference = Annotated[str, Meta(min_length=1, max_length=255)]
References = Annotated[tuple[Reference, ...], Meta(max_length=200)]
Days = Annotated[int, Meta(ge=1, le=3_650, description="Calendar days, today included.")]
Cents = Annotated[int, Meta(ge=-(1 << 53) + 1, le=(1 << 53) - 1)]
ConsentState = Literal["may_be_texted", "withdrawn", "never_asked", "do_not_contact"]
Comparison = Literal[
    "is", "is_not", "contains", "starts_with", "any_of", "none_of", "is_set", "is_not_set",
    "less", "at_most", "more", "at_least", "between",
    "before", "after", "in_last_days", "not_in_last_days", "in_next_days", "anniversary_in_next_days",
]  # fmt: skip
DateComparison = Literal["before", "after", "between", "in_last_days", "not_in_last_days"]


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    pass


class ValueComparison(Protocol):
    """A comparison of the value of a key, by the declared type of the key."""

    @property
    def key(self) -> str: ...
    @property
    def comparison(self) -> Comparison: ...
    @property
    def value(self) -> str | None: ...
    @property
    def values(self) -> tuple[str, ...]: ...
    @property
    def days(self) -> int | None: ...
    @property
    def without_value(self) -> bool | None: ...


class OfProperty(Strict, frozen=True, kw_only=True):
    """A property of the product on a line, read by its declared type; the fields are those of an attribute."""

    key: PropertyKey
    comparison: Comparison
    value: str | None = None
    values: Values = ()
    days: Days | None = None
    without_value: bool | None = None


class When(Strict, frozen=True, kw_only=True):
    """A calendar day in the organization's time zone. `date` is for before and after, `from` and `to` for between."""

    comparison: DateComparison
    date: dt.date | None = None
    from_: dt.date | None = msgspec.field(name="from", default=None)
    to: dt.date | None = None
    days: Days | None = None
    without_value: bool | None = None


class Window(Strict, frozen=True, kw_only=True):
    """The last days, today included, or the days `from` … `to`, both included."""

    last_days: Days | None = None
    from_: dt.date | None = msgspec.field(name="from", default=None)
    to: dt.date | None = None
