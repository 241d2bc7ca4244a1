"""Segments to start from."""

from dataclasses import dataclass
from typing import Final

from regulars.conditions.tree import (
    All,
    Bought,
    Condition,
    Consent,
    Created,
    LastPurchase,
    OfAttribute,
    Returned,
    Spend,
    When,
    Window,
)
from regulars.segments.definition import Definition

BIRTHDAYS: Final = ("birthday", "birth_date", "birthdate", "date_of_birth", "dob")


@dataclass(frozen=True, slots=True)
class Start:
    key: str
    title: str
    text: str
    definition: Definition


def starts(*, birthday: str = BIRTHDAYS[0], store: str = "", currency: str = "EUR") -> tuple[Start, ...]:
    """`birthday` is the organization's own key of a date, `store` one of its stores."""
    stores = (store,) if store else ()
    return (
        _start("lapsed", "Lapsed 60 to 365 days", "Bought within a year, but not in the last 60 days.",
            LastPurchase(when=When(comparison="in_last_days", days=365)),
            LastPurchase(when=When(comparison="not_in_last_days", days=60, without_value=False)),
        ),
        _start("best", "Best customers of a store", "Spent 500 or more there in a year, net of returns.",
            Spend(currency=currency, at_least_cents=50_000, window=Window(last_days=365), stores=stores),  # type: ignore[arg-type]  # one of the four
        ),
        _start("unasked", "New customers never asked for consent", "Known for 30 days at most, and nobody asked them.",
            Created(when=When(comparison="in_last_days", days=30)),
            Consent(state="never_asked"),
        ),
        _start("returned", "Returned in the last 30 days", "Brought something back lately.",
            Returned(at_least=1, window=Window(last_days=30)),
        ),
        _start("birthday", "Birthday in the next 7 days", "By a date among their attributes.",
            OfAttribute(key=birthday, comparison="anniversary_in_next_days", days=7),
        ),
    )  # fmt: skip


def empty() -> Definition:
    """Somebody who bought lately: a first condition to change."""
    return Definition(name="New segment", match=All(of=(Bought(at_least=1, window=Window(last_days=30)),)))


def _start(key: str, title: str, text: str, *conditions: Condition) -> Start:
    return Start(key, title, text, Definition(name=title, match=All(of=conditions)))
