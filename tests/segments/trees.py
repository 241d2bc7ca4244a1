"""Definitions by chance, of every kind of condition."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

VALUES = {
    "tier": ["Gold", "gold", "Silver", "Été", "ÉTÉ", ""],
    "points": ["1", "1.0", "2.5", "-3", "10", "x", "007"],
    "born": ["1990-02-28", "1992-02-29", "2001-11-20", "2026-11-10T23:30:00Z", "no date"],
    "vip": ["true", "false", "maybe"],
}
DAYS = [0, 1, 7, 30, 60, 365]


class Trees:
    """Definitions by chance, of every kind of condition."""

    def __init__(self, seed: int, *, journeys: Sequence[str] = (), segments: Sequence[str] = ()) -> None:
        self.chance = random.Random(seed)
        self.journeys = journeys
        self.segments = segments

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

    def comparison(self, key: str, values: list[str]) -> dict[str, Any]:
        pick = self.chance.choice
        offered = {
            "tier": ["is", "is_not", "contains", "starts_with", "any_of"],
            "points": ["is", "is_not", "less", "at_most", "more", "at_least", "between"],
            "born": ["before", "after", "between", "in_last_days", "not_in_last_days", "anniversary_in_next_days"],
            "vip": ["is_true", "is_false"],
            "size": ["is", "is_not", "contains", "any_of", "less", "at_least"],
        }
        comparison = pick([*offered[key], "is_set", "is_not_set"])
        asked: dict[str, Any] = {"key": key, "comparison": comparison}
        if comparison in {"is", "is_not", "contains", "starts_with"} and key in {"tier", "size"}:
            asked["value"] = pick(["gold", "été", "o", "38", "40"])
        elif comparison == "any_of":
            asked["values"] = ["GOLD", "Silver", "38"]
        elif key == "points" or comparison in {"less", "at_least"}:
            asked |= {"values": ["1", "10"]} if comparison == "between" else {"value": pick(["1", "2.50", "39"])}
        elif comparison in {"before", "after"}:
            asked["value"] = pick(["1992-02-29", "2026-11-11"])
        elif comparison == "between":
            asked["values"] = ["1990-01-01", "1995-01-01"]
        elif comparison.endswith("days"):
            asked["days"] = pick(DAYS)
        if comparison in {"is_not", "not_in_last_days"}:
            asked["without_value"] = pick([True, False])
        return asked

    def attribute(self) -> dict[str, Any]:
        key = self.chance.choice([*VALUES])
        return {"type": "attribute", **self.comparison(key, VALUES[key])}

    def consent(self) -> dict[str, Any]:
        pick = self.chance.choice
        state = pick(["may_be_texted", "withdrawn", "never_asked", "do_not_contact"])
        asked: dict[str, Any] = {"type": "consent", "state": state}
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
        asked |= pick([{}, {}, {"products": ["A"]}, {"property": self.comparison("size", [])}])
        if has_window:
            today = datetime.now(UTC).date()
            dates = {"from": str(today - timedelta(days=40)), "to": str(today - timedelta(days=1))}
            asked |= pick([{}, {"window": {"last_days": pick(DAYS)}}, {"window": dates}])
        return asked

    def times(self) -> dict[str, Any]:
        bounds = self.chance.choice(
            [{}, {"at_least": 2}, {"at_most": 1}, {"at_least": 1, "at_most": 3}, {"none": True}]
        )
        return {"type": self.chance.choice(["bought", "tickets", "returned"]), **bounds, **self.of_sales()}

    def money(self) -> dict[str, Any]:
        return self.chance.choice(
            [{"at_least_cents": 1000}, {"at_most_cents": 0}, {"at_least_cents": -500, "at_most_cents": 2500}]
        )

    def spend(self) -> dict[str, Any]:
        bounds = self.chance.choice([self.money(), {"none": True}])
        return {"type": "spend", "currency": self.chance.choice(["EUR", "CHF"]), **bounds, **self.of_sales()}

    def ticket(self) -> dict[str, Any]:
        return {"type": "ticket_value", "currency": "EUR", **self.money(), **self.of_sales()}

    def articles(self) -> dict[str, Any]:
        bounds = self.chance.choice([{"at_least": 1.5}, {"at_most": 0}, {"none": True}, {"at_least": 0.123456}])
        return {"type": "articles", **bounds, **self.of_sales()}

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
        return {"type": "segment", "id": self.chance.choice(self.segments)} if self.segments else self.named()

    def named(self) -> dict[str, Any]:
        return self.chance.choice(
            [{"type": "named", "is": False}, {"type": "named"}, {"type": "country", "any_of": ["FR"]}]
        )
