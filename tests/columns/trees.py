"""Definitions by chance, of every kind of condition."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from regulars.catalog.model import AttributeType
from regulars.conditions.comparisons import COMPARISONS_BY_TYPE, NEGATIVE, OF_DAYS, ONE_VALUE, SEVERAL_VALUES

TODAY = datetime.now(UTC).date()
# On the edge of what a comparison of seven days asks for; its anniversary is in a leap year, in case it is 29 February.
SOON = TODAY + timedelta(days=7)
VALUES = {
    "tier": ["Gold", " gold", "Silver ", "Été", "ÉTÉ", ""],
    "points": [
        "1", "2.5 ", "1.0", "2.5", "-3", "10", "x", "007", "0", "-0", "0.0000001", "-0.0000001", "2.5000000", "+1", "1e2", " 1",
        "1.", ".5", "١", "12345678901234567890", "9" * 40 + ".5", "-999999999999.999999", "0" * 20 + "2.50",
    ],
    "born": [
        "1990-02-28", "1992-02-29", "2001-11-20", f"{TODAY}T23:30:00Z", "no date", f" {SOON}", str(SOON), str(SOON.replace(year=1996)),
        f"{SOON}T00:15:00+02:00", "0001-01-01", "9999-12-31",
    ],
    "vip": ["true", " false", "maybe"],
}  # fmt: skip
ENUMS = {"size": ["38", "XL"], "others": ["Gold", "1", "true"]}
_NUMBERS = ["1", "2.50", "10", "-3", "0", "0.0000001", "12345678901234567890", "-999999999999.999999", "40"]
# What a comparison of each type may be asked with.
ASKED = {
    AttributeType.TEXT: ["gold", "été", "o", "38", "40", "Silver", "x"],
    AttributeType.NUMBER: _NUMBERS,
    AttributeType.CURRENCY: _NUMBERS,
    AttributeType.DATE: ["1992-02-29", "1990-01-01", str(SOON), "9999-12-31", str(TODAY)],
    AttributeType.BOOLEAN: ["true", "false"],
}
# The largest amount there is; two of them pass what doubles count exactly.
LARGE = 2**53 - 1
DAYS = [1, 2, 7, 30, 60, 365]


class Trees:
    """Definitions by chance, of every kind of condition."""

    def __init__(self, seed: int, *, journeys: Sequence[str] = (), segments: Sequence[str] = ()) -> None:
        self.chance = random.Random(seed)
        self.journeys = journeys
        self.segments = segments
        # As the keys are declared; a test that gives them another type sets it here.
        self.types: dict[str, AttributeType] = {}

    def group(self, depth: int = 3) -> dict[str, Any]:
        size = self.chance.choice([1, 2, 3])
        inner = [
            self.group(depth - 1) if depth > 1 and self.chance.random() < 0.35 else self.leaf() for _ in range(size)
        ]
        return {"type": self.chance.choice(["all", "any", "none"]), "of": inner}

    def leaf(self) -> dict[str, Any]:
        makers = (self.attribute, self.attribute, self.consent, self.times, self.spend, self.articles, self.ticket,
                  self.purchase, self.created, self.named, self.texts, self.other)  # fmt: skip
        return self.chance.choice(makers)()

    def comparison(self, key: str) -> dict[str, Any]:
        """One that the type of the key offers, with values that it reads; now and then one of another type."""
        pick = self.chance.choice
        declared = self.types.get(key, AttributeType.TEXT)
        if self.chance.random() < 0.05:
            declared = pick([*AttributeType])
        comparison = pick(sorted(COMPARISONS_BY_TYPE[declared]))
        asked: dict[str, Any] = {"key": key, "comparison": comparison}
        constants = ENUMS["size" if key == "size" else "others"] if declared is AttributeType.ENUM else ASKED[declared]
        if comparison == "between":
            asked["values"] = sorted(self.chance.choices(constants, k=2), key=_in_order(declared))
        elif comparison in SEVERAL_VALUES:
            asked["values"] = self.chance.sample(constants, pick([1, 2]))
        elif comparison in ONE_VALUE:
            asked["value"] = pick(constants)
        elif comparison in OF_DAYS:
            asked["days"] = pick(DAYS)
        if comparison in NEGATIVE:
            asked["without_value"] = pick([True, False])
        return asked

    def attribute(self) -> dict[str, Any]:
        return {"type": "attribute", **self.comparison(self.chance.choice([*VALUES]))}

    def consent(self) -> dict[str, Any]:
        pick = self.chance.choice
        state = pick(["may_be_texted", "withdrawn", "never_asked", "do_not_contact"])
        asked: dict[str, Any] = {"type": "consent", "state": state, "is": pick([True, True, False])}
        if state in {"may_be_texted", "withdrawn"}:
            asked |= pick(
                [
                    {},
                    {"sources": ["WEBSITE"]},
                    {"stores": ["PAR"]},
                    {"since": {"comparison": "in_last_days", "days": 3}},
                ]
            )
        return asked

    def of_sales(self, *, has_window: bool = True) -> dict[str, Any]:
        pick = self.chance.choice
        asked: dict[str, Any] = {}
        if pick([True, False]):
            asked["stores"] = pick([["LYO"], ["LYO", "PAR"]])
        asked |= pick([{}, {}, {"products": ["A"]}, {"property": self.comparison("size")}])
        if has_window:
            today = datetime.now(UTC).date()
            dates = {"from": str(today - timedelta(days=40)), "to": str(today - timedelta(days=1))}
            asked |= pick([{}, {"window": {"last_days": pick(DAYS)}}, {"window": dates}])
        return asked

    def times(self) -> dict[str, Any]:
        bounds = self.chance.choice(
            [{}, {"at_least": 2}, {"at_most": 1}, {"at_least": 1, "at_most": 3}, {"none": True}]
        )
        kind = self.chance.choice([{"type": "bought"}, {"type": "bought", "count": "days"}, {"type": "returned"}])
        return {**kind, **bounds, **self.of_sales()}

    def money(self) -> dict[str, Any]:
        return self.chance.choice(
            [
                {"at_least_cents": 1000},
                {"at_most_cents": 0},
                {"at_least_cents": -500, "at_most_cents": 2500},
                {"at_least_cents": LARGE},
            ]
        )

    def spend(self) -> dict[str, Any]:
        bounds = self.chance.choice([self.money(), {"none": True}])
        return {"type": "spend", "currency": self.chance.choice(["EUR", "CHF"]), **bounds, **self.of_sales()}

    def ticket(self) -> dict[str, Any]:
        return {"type": "ticket_value", "currency": "EUR", **self.money(), **self.of_sales()}

    def articles(self) -> dict[str, Any]:
        bounds = self.chance.choice([{"at_least": 1.5}, {"at_most": 0}, {"none": True}, {"at_least": 0.123456}])
        return {"type": "bought", "count": "articles", **bounds, **self.of_sales()}

    def purchase(self) -> dict[str, Any]:
        return {
            "type": self.chance.choice(["first_purchase", "last_purchase"]),
            "when": self.when(may_be_missing=True),
            **self.of_sales(has_window=False),
        }

    def when(self, *, may_be_missing: bool) -> dict[str, Any]:
        today = datetime.now(UTC).date()
        pick = self.chance.choice
        comparison = pick(["before", "after", "between", "in_last_days", "not_in_last_days"])
        if comparison in {"before", "after"}:
            return {"comparison": comparison, "date": str(today - timedelta(days=pick(DAYS)))}
        if comparison == "between":
            return {
                "comparison": comparison,
                "from": str(today - timedelta(days=60)),
                "to": str(today - timedelta(days=1)),
            }
        missing = {"without_value": pick([True, False])} if comparison == "not_in_last_days" and may_be_missing else {}
        return {"comparison": comparison, "days": pick(DAYS), **missing}

    def created(self) -> dict[str, Any]:
        return {"type": "created", "when": self.when(may_be_missing=False)}

    def texts(self) -> dict[str, Any]:
        journey = self.chance.choice([None, *self.journeys])
        of = {} if journey is None else {"journey": journey}
        return {"type": "texts", "days": self.chance.choice(DAYS), "got": self.chance.random() < 0.5, **of}

    def other(self) -> dict[str, Any]:
        """One who has none to ask for asks for names."""
        return (
            {"type": "segment", "id": self.chance.choice(self.segments), "is": self.chance.random() < 0.7}
            if self.segments
            else self.named()
        )

    def named(self) -> dict[str, Any]:
        return self.chance.choice(
            [{"type": "named", "is": False}, {"type": "named"}, {"type": "country", "any_of": ["FR"]}]
        )


def _in_order(declared: AttributeType) -> Callable[[str], Any]:
    return str if declared is AttributeType.DATE else Decimal
