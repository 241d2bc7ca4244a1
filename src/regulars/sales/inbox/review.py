"""Look at collisions, compare an attempt with the ticket that was kept, and decide."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows, Position
from regulars.sales.encode import show
from regulars.sales.inbox import queries
from regulars.sales.inbox.model import CollisionLine, Review
from regulars.sales.model import StoredSale

NOTE_CHARACTERS_MAX: Final = 1_000
# Three free objects may hold a person's data, and only whoever sees such data gets to compare them.
FREE: Final = ("payments", "loyalty", "metadata", "profile_id")


class Decision(StrEnum):
    """The first ticket stays in either case; what is decided is what is thought of the second."""

    # The first is right: the attempt was wrong.
    KEPT = "kept"
    # The difference does not matter, or was settled elsewhere.
    DISMISSED = "dismissed"


class Difference(NamedTuple):
    """One field that the attempt says otherwise."""

    field: str
    kept: str
    attempted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An attempt beside the ticket that was kept."""

    first_seen_at: datetime
    last_seen_at: datetime
    times_seen: int
    differences: list[Difference]


@dataclass(frozen=True, slots=True)
class Collision:
    review: Review
    comparisons: list[Comparison]


async def list_collisions(
    tx: Tx, organization_id: UUID, page: PageRequest, *, is_reviewed: bool
) -> PageRows[CollisionLine]:
    return await queries.list_collisions(tx, organization_id, page, is_reviewed=is_reviewed)


def position_of(line: CollisionLine) -> Position:
    return format_timestamp(line.last_seen_at), str(line.sales_event_id)


async def count_open(tx: Tx, organization_id: UUID, *, most: int) -> int:
    return await queries.count_open(tx, organization_id, most=most)


async def find_collision(tx: Tx, organization_id: UUID, sale: StoredSale) -> Collision | None:
    """What was tried under this ticket's id, compared field by field; None if nothing was."""
    review = await queries.find_review(tx, organization_id, sale.id)
    if review is None:
        return None
    attempts = await queries.list_attempts(tx, organization_id, sale.id)
    kept = _as_told(sale)
    comparisons = [
        Comparison(
            first_seen_at=attempt.first_seen_at,
            last_seen_at=attempt.last_seen_at,
            times_seen=attempt.times_seen,
            differences=compare(kept, msgspec.json.decode(attempt.attempt)),
        )
        for attempt in attempts
    ]
    return Collision(review, comparisons)


async def decide(
    tx: Tx, organization_id: UUID, sales_event_id: UUID, decision: Decision, *, note: str | None, decided_by: str
) -> bool:
    """Write the decision down; whether there was something to decide."""
    return await queries.write_review(
        tx, organization_id, sales_event_id, review=decision.value, note=note, reviewed_by=decided_by
    )


def compare(kept: dict[str, Any], attempted: dict[str, Any]) -> list[Difference]:
    """The fields that differ, lines one by one; an attempt may name store and customer by either id."""
    differences = []
    for field, value in kept.items():
        told = attempted.get(field)
        if field in {"store_id", "profile_id"}:
            if told not in (value or [None]):
                differences.append(Difference(field, _text(value[-1] if value else None), _text(told)))
        elif field == "line_items":
            differences += _compare_lines(value, told or [])
        elif value != told:
            differences.append(Difference(field, _text(value), _text(told)))
    return differences


def _compare_lines(kept: list[Any], attempted: list[Any]) -> list[Difference]:
    rows = max(len(kept), len(attempted))
    pairs = [(kept[n] if n < len(kept) else None, attempted[n] if n < len(attempted) else None) for n in range(rows)]
    return [
        Difference(f"line_items[{n}]", _text(one), _text(other)) for n, (one, other) in enumerate(pairs) if one != other
    ]


def _as_told(sale: StoredSale) -> dict[str, Any]:
    """The kept ticket in the words of a request; a reference as both things that it may be called by."""
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(show(sale)))
    store, profile = shown.pop("store"), shown.pop("profile")
    del shown["id"], shown["created_at"]
    return {
        **shown,
        "store_id": [store["id"], store["external_id"]],
        "profile_id": None if profile is None else [profile["id"], profile["external_id"]],
    }


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
