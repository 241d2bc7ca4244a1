"""The send-time rules: what holds by default in each country, and whether a retailer's own rule is looser.

The defaults keep inside the law of each country with a margin. Sources are in docs/texting.md.
"""

from datetime import timedelta
from typing import Final

import msgspec

# A text that finds no opening within this time is not sent at all: it would say something old.
WAIT_MAX: Final = timedelta(hours=96)
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Window(msgspec.Struct, frozen=True):
    """Local hours of one day, the end not included; `closes` may be 24:00, written as hour 24."""

    opens_minute: int
    closes_minute: int


class Rule(msgspec.Struct, frozen=True):
    """Seven days from Monday on; None is a closed day."""

    days: tuple[Window | None, ...]
    on_holidays: bool = False


def _hours(opens: int, closes: int) -> Window:
    return Window(opens * 60, closes * 60)


_MONDAY_TO_SATURDAY: Final = Rule(days=(*[_hours(8, 20)] * 6, None))

DEFAULT_RULE: Final = _MONDAY_TO_SATURDAY
DEFAULT_RULES: Final = {
    "FR": _MONDAY_TO_SATURDAY,
    "DE": _MONDAY_TO_SATURDAY,
    "AT": _MONDAY_TO_SATURDAY,
    "CH": _MONDAY_TO_SATURDAY,
    # Inside every state's law: Texas and Florida close earliest, and some states know Saturday hours of their own.
    "US": Rule(days=(*[_hours(10, 18)] * 5, _hours(10, 17), None)),
}


class Cap(msgspec.Struct, frozen=True):
    """At most `texts` to one number in any `hours`."""

    texts: int
    hours: int


DEFAULT_CAPS: Final = (Cap(texts=1, hours=24), Cap(texts=4, hours=30 * 24))


def default_rule(country: str) -> Rule:
    return DEFAULT_RULES.get(country, DEFAULT_RULE)


def looser_than_default(country: str, rule: Rule) -> list[str]:
    """One sentence for each way in which a rule allows what the default of its country does not."""
    default = default_rule(country)
    found: list[str] = []
    for name, own, usual in zip(DAYS, rule.days, default.days, strict=True):
        if own is None:
            continue
        if usual is None:
            found.append(f"{name} is closed by default in {country}.")
        elif own.opens_minute < usual.opens_minute or own.closes_minute > usual.closes_minute:
            usually = f"{_clock(usual.opens_minute)} to {_clock(usual.closes_minute)}"
            found.append(f"{name} is open from {usually} by default in {country}.")
    if rule.on_holidays and not default.on_holidays:
        found.append(f"No text is sent on public holidays by default in {country}.")
    return found


def looser_caps(caps: tuple[Cap, ...]) -> list[str]:
    """One sentence for each default cap that the given ones do not keep."""
    return [
        f"The default is at most {default.texts} in {default.hours} hours to one number."
        for default in DEFAULT_CAPS
        if not any(cap.texts <= default.texts and cap.hours >= default.hours for cap in caps)
    ]


def _clock(minute: int) -> str:
    return f"{minute // 60}:{minute % 60:02d}"
