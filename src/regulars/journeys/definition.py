"""What a journey is, as a file says it. `docs/journeys.md` describes it; its JSON Schema is made from these types."""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from regulars.kit.wire import Name
from regulars.profiles.model import AttributeKey as Key
from regulars.sales.model import Currency

StepId = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]
Days = Annotated[int, Meta(ge=1, le=3_650)]
Cents = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
Clock = Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="Local time, such as 10:00.")]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
Comparison = Literal[
    "is", "is_not", "contains", "starts_with", "any_of", "none_of", "is_set", "is_not_set",
    "less", "at_most", "more", "at_least", "between", "before", "after", "in_last_days",
]  # fmt: skip


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class _Condition(_Strict, frozen=True, tag_field="type"):
    pass


class All(_Condition, frozen=True, tag="all"):
    of: tuple["Condition", ...]


class Any(_Condition, frozen=True, tag="any"):
    of: tuple["Condition", ...]


class Nothing(_Condition, frozen=True, tag="none"):
    """None of them holds."""

    of: tuple["Condition", ...]


class OfStore(_Condition, frozen=True, tag="store"):
    """The sale was made in one of these stores, by external_id or canonical id."""

    any_of: Annotated[tuple[str, ...], Meta(min_length=1, max_length=200)]


class OfAmount(_Condition, frozen=True, tag="amount"):
    """What was paid, or paid back."""

    at_least_cents: Cents | None = None
    at_most_cents: Cents | None = None


class OfCurrency(_Condition, frozen=True, tag="currency"):
    any_of: Annotated[tuple[Currency, ...], Meta(min_length=1)]


class OfProduct(_Condition, frozen=True, tag="product"):
    """A line of the sale has one of these products, or a property that compares so."""

    any_of: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    property: Key | None = None
    comparison: Comparison | None = None
    value: str | None = None
    values: Annotated[tuple[str, ...], Meta(max_length=200)] = ()


class OfAttribute(_Condition, frozen=True, tag="attribute"):
    """The customer's attribute, read by its declared type."""

    key: Key
    comparison: Comparison
    value: str | None = None
    values: Annotated[tuple[str, ...], Meta(max_length=200)] = ()


class Subscribed(_Condition, frozen=True, tag="subscribed"):
    """Whether the customer may be texted now."""

    is_: bool = msgspec.field(name="is", default=True)


class Purchases(_Condition, frozen=True, tag="purchases"):
    """Earlier purchases of the customer in the last days, the triggering one left out: none (0) or at least so many."""

    in_days: Days
    at_least: Annotated[int, Meta(ge=0, le=1_000)] = 1
    none: bool = False


class OfSegment(_Condition, frozen=True, tag="segment"):
    """The customer is in a segment, by its version of that moment (`"is": false`: is not)."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    is_: bool = msgspec.field(name="is", default=True)


Condition = (
    All | Any | Nothing | OfStore | OfAmount | OfCurrency | OfProduct | OfAttribute | Subscribed | Purchases | OfSegment
)


class _Step(_Strict, frozen=True, tag_field="do", kw_only=True):
    id: StepId | None = None


class Wait(_Step, frozen=True, tag="wait", kw_only=True):
    """For a time."""

    minutes: Annotated[int, Meta(ge=0, le=525_600)] = 0
    hours: Annotated[int, Meta(ge=0, le=8_760)] = 0
    days: Annotated[int, Meta(ge=0, le=365)] = 0


class WaitUntil(_Step, frozen=True, tag="wait_until", kw_only=True):
    """Until the next such local time, on one of these weekdays where there are any."""

    time: Clock
    weekdays: tuple[Weekday, ...] = ()


class WaitForPurchase(_Step, frozen=True, tag="wait_for_purchase", kw_only=True):
    """Until the customer buys, or the time is over."""

    hours: Annotated[int, Meta(ge=0, le=8_760)] = 0
    days: Annotated[int, Meta(ge=0, le=365)] = 0
    then: tuple["Step", ...] = ()
    otherwise: tuple["Step", ...] = msgspec.field(name="else", default=())


class Branch(_Step, frozen=True, tag="branch", kw_only=True):
    condition: Condition = msgspec.field(name="if")
    then: tuple["Step", ...] = ()
    otherwise: tuple["Step", ...] = msgspec.field(name="else", default=())


class Split(_Step, frozen=True, tag="split", kw_only=True):
    """By chance, and always the same way for the same customer."""

    percent: Annotated[int, Meta(ge=1, le=99)]
    then: tuple["Step", ...] = ()
    otherwise: tuple["Step", ...] = msgspec.field(name="else", default=())


class SendText(_Step, frozen=True, tag="send_text", kw_only=True):
    text: Annotated[str, Meta(min_length=1, max_length=2_000)]


class SetAttribute(_Step, frozen=True, tag="set_attribute", kw_only=True):
    key: Key
    value: Annotated[str, Meta(max_length=2_048)]


class Exit(_Step, frozen=True, tag="exit", kw_only=True):
    pass


Step = Wait | WaitUntil | WaitForPurchase | Branch | Split | SendText | SetAttribute | Exit
Trigger = Literal["opt_in", "purchase", "return"]
ExitOn = Literal["purchase", "return"]


class Reentry(_Strict, frozen=True):
    """Whether another fact brings a customer in again: always, never, or so many days after the last time."""

    policy: Literal["always", "never", "after_days"] = "always"
    days: Days | None = None


class Definition(_Strict, frozen=True, kw_only=True):
    name: Name
    trigger: Trigger
    filter: Condition | None = None
    reentry: Reentry = Reentry()
    # A withdrawal always ends a run.
    exit_on: tuple[ExitOn, ...] = ()
    steps: tuple[Step, ...]
