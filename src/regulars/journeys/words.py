"""Journeys in words: what a step does, what a condition asks. For pages, differences between versions and commands."""

from typing import Final, NamedTuple

from regulars.journeys.definition import (
    All,
    Any,
    Branch,
    Condition,
    Definition,
    Exit,
    Nothing,
    OfAmount,
    OfAttribute,
    OfCurrency,
    OfProduct,
    OfSegment,
    OfStore,
    Purchases,
    SendText,
    SetAttribute,
    Split,
    Step,
    Subscribed,
    Wait,
    WaitForPurchase,
    WaitUntil,
)

TRIGGERS: Final = {
    "purchase": "A purchase is recorded",
    "return": "A return is recorded",
    "opt_in": "A customer opts in to texts",
}
COMPARISONS: Final = {
    "is": "is",
    "is_not": "is not",
    "contains": "contains",
    "starts_with": "starts with",
    "any_of": "is one of",
    "none_of": "is none of",
    "is_set": "is set",
    "is_not_set": "is not set",
    "less": "is less than",
    "at_most": "is at most",
    "more": "is more than",
    "at_least": "is at least",
    "between": "is between",
    "before": "is before",
    "after": "is after",
    "in_last_days": "is in the last days:",
}
GROUPS: Final = {All: "all", Any: "any", Nothing: "none"}
GROUP_WORDS: Final = {"all": "All of these hold", "any": "Any of these holds", "none": "None of these holds"}
KINDS: Final = {
    "wait": ("Wait", "clock"),
    "wait_until": ("Wait until", "clock"),
    "wait_for_purchase": ("Wait for an event", "ticket"),
    "branch": ("Branch", "branch"),
    "split": ("Split", "branch"),
    "send_text": ("Send a text", "message"),
    "set_attribute": ("Set attribute", "tag"),
    "exit": ("Exit", "out"),
}
_NAMES_SHOWN: Final = 3


class Told(NamedTuple):
    """A step as a card shows it."""

    kind: str
    name: str
    more: str
    icon: str


def kind_of(step: Step) -> str:
    return str(step.__struct_config__.tag)


def tell_step(step: Step) -> Told:
    kind, icon = KINDS[kind_of(step)]
    name, more = _tell(step)
    return Told(kind, name, more, icon)


def tell_ways(step: Step) -> tuple[str, str]:
    """What the two ways of a forking step are called."""
    match step:
        case WaitForPurchase():
            return "Bought", "Did not"
        case Split(percent=percent):
            return f"{percent}%", f"{100 - percent}%"
        case _:
            return "Yes", "No"


def tell_entry(definition: Definition) -> str:
    match definition.reentry.policy:
        case "never":
            return "each customer once"
        case "after_days":
            return f"again {_count(definition.reentry.days or 0, 'day')} after the last time at the earliest"
        case _:
            return "again with each one, unless a customer is in it"


def tell_exits(definition: Definition) -> str:
    also = "".join(f", a {it}" for it in definition.exit_on)
    return f"Leaves by: a withdrawal{also}"


def tell_condition(condition: Condition) -> str:
    """One line; groups in brackets."""
    match condition:
        case All(of=several):
            return _joined(several, " and ")
        case Any(of=several):
            return _joined(several, " or ")
        case Nothing(of=several):
            return f"none of: {_joined(several, ' or ')}"
        case OfStore() | OfAmount() | OfCurrency() | OfProduct():
            return _tell_of_sale(condition)
        case _:
            return _tell_of_customer(condition)


def _tell_of_sale(condition: OfStore | OfAmount | OfCurrency | OfProduct) -> str:
    match condition:
        case OfStore(any_of=stores):
            return f"bought in {_several(stores)}"
        case OfAmount():
            return f"the ticket is {tell_amount(condition)}"
        case OfCurrency(any_of=currencies):
            return f"paid in {' or '.join(currencies)}"
        case OfProduct():
            return _tell_product(condition)


def _tell_of_customer(condition: OfAttribute | Subscribed | Purchases | OfSegment) -> str:
    match condition:
        case OfAttribute(key=key, comparison=comparison):
            return f"{key} {_compared(comparison, condition.value, condition.values)}"
        case Subscribed(is_=wanted):
            return "may be texted now" if wanted else "may not be texted now"
        case Purchases(in_days=days):
            since = f"in the {days} days before"
            if condition.none:
                return f"no other purchase {since}"
            return f"at least {_count(condition.at_least, 'other purchase')} {since}"
        case OfSegment(id=identifier, is_=wanted):
            return f"in the segment {identifier}" if wanted else f"not in the segment {identifier}"


def tell_amount(condition: OfAmount) -> str:
    least, most = condition.at_least_cents, condition.at_most_cents
    if least is not None and most is not None:
        return f"from {spell_cents(least)} to {spell_cents(most)}"
    if least is not None:
        return f"{spell_cents(least)} or more"
    return f"{spell_cents(most)} or less" if most is not None else "of any amount"


def spell_cents(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def tell_length(*, days: int = 0, hours: int = 0, minutes: int = 0) -> str:
    spans = [_count(days, "day"), _count(hours, "hour"), _count(minutes, "minute")]
    found = [span for number, span in zip((days, hours, minutes), spans, strict=True) if number]
    return " and ".join(found) or "no time"


def _tell(step: Step) -> tuple[str, str]:
    match step:
        case Wait():
            return tell_length(days=step.days, hours=step.hours, minutes=step.minutes), ""
        case WaitUntil(time=time, weekdays=weekdays):
            on = f" on {' or '.join(day.capitalize() for day in weekdays)}" if weekdays else ""
            return f"{time} local time{on}", "of the number's country, else the store's, else the organization's"
        case WaitForPurchase():
            length = tell_length(days=step.days, hours=step.hours)
            return f"Buys within {length}", f"otherwise goes on after {length}"
        case Branch(condition=condition):
            return f"{_sentence(tell_condition(condition))}?", "asked at this moment, not at entry"
        case Split(percent=percent):
            return f"{percent}% of the customers", "by chance, always the same way for the same customer"
        case SendText(text=text):
            return f"“{text}”", "consent, hours and caps are asked when it leaves"
        case SetAttribute(key=key, value=value):
            return f"{key} = {value}", ""
        case Exit():
            return "Exit", ""


def _tell_product(condition: OfProduct) -> str:
    told = []
    if condition.any_of:
        told.append(f"one of the products {_several(condition.any_of)}")
    if condition.property is not None:
        compared = _compared(condition.comparison or "is_set", condition.value, condition.values)
        told.append(f"a product whose {condition.property} {compared}")
    return f"bought {' that is '.join(told)}" if told else "bought any product"


def _compared(comparison: str, value: str | None, values: tuple[str, ...]) -> str:
    words = COMPARISONS[comparison]
    if comparison == "between":
        return f"{words} {' and '.join(values)}"
    shown = _several(values) if values else (value or "")
    return f"{words} {shown}".strip()


def _several(names: tuple[str, ...]) -> str:
    if len(names) <= _NAMES_SHOWN:
        return " or ".join(names)
    return f"{', '.join(names[:_NAMES_SHOWN])} or {len(names) - _NAMES_SHOWN} others"


def _joined(conditions: tuple[Condition, ...], word: str) -> str:
    told = [f"({tell_condition(it)})" if isinstance(it, All | Any) else tell_condition(it) for it in conditions]
    return word.join(told) or "nothing"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
