"""Review ticket collisions: a caller attempted to send a stored ticket again with other content.

This module lists collisions, compares the attempts with the stored ticket, and records the user's decision.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from psycopg.sql import SQL

from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Position
from regulars.sales.encode import to_wire
from regulars.sales.model import StoredSale

NOTE_CHARACTERS_MAX: Final = 1_000
# Fields that may contain personal data; only a user who may see personal data can compare them.
PERSONAL_FIELDS: Final = ("payments", "loyalty", "metadata", "profile_id")


class Decision(StrEnum):
    """The decision about the attempt; the stored ticket stays in either case."""

    # The stored ticket is right, and the attempt was wrong.
    FIRST_IS_RIGHT = "kept"
    # The difference does not matter, or was resolved elsewhere.
    DISMISSED = "dismissed"


class ListedCollision(NamedTuple):
    """A ticket in the list of collisions; `times_seen` is the number of attempts to send it again."""

    sales_event_id: UUID
    external_id: str
    store_external_id: str
    store_name: str | None
    times_seen: int
    last_seen_at: datetime
    # The number of different contents among the attempts.
    contents: int
    review: str | None
    note: str | None
    reviewed_by: str | None


class Review(NamedTuple):
    times_seen: int
    last_seen_at: datetime
    reviewed_at: datetime | None
    review: str | None
    note: str | None
    reviewed_by: str | None


class FieldDifference(NamedTuple):
    """A field in which the attempt differs from the stored ticket."""

    field: str
    stored: str
    attempted: str


class AttemptComparison(NamedTuple):
    """An attempt compared with the stored ticket."""

    first_seen_at: datetime
    last_seen_at: datetime
    times_seen: int
    differences: list[FieldDifference]


@dataclass(frozen=True, slots=True)
class Collision:
    review: Review
    comparisons: list[AttemptComparison]


_LAST_SEEN: Final = Keyset({"t.last_seen_at": parse_timestamp, "t.sales_event_id": UUID}, is_descending=True)


async def list_collisions(
    tx: Tx, organization_id: UUID, page: PageRequest, *, is_reviewed: bool
) -> PageRows[ListedCollision]:
    """List the collisions that a user has reviewed, or those that no user has reviewed; most recent first."""
    return await _LAST_SEEN.fetch(
        tx,
        """
        SELECT t.sales_event_id, e.external_id, s.external_id, s.name, t.times_seen, t.last_seen_at, k.contents,
               t.review, t.note, t.reviewed_by
        FROM (
            SELECT sales_event_id, times_seen, last_seen_at, review, note, reviewed_by
            FROM ticket_collision_totals AS t
            WHERE t.organization_id = %(organization_id)s AND (t.reviewed_at IS NOT NULL) = {is_reviewed}
              {and_after_position}
            ORDER BY {ordered}
            LIMIT %(limit)s
        ) AS t
        JOIN LATERAL (
            SELECT external_id, store_id FROM sales_events
            WHERE organization_id = %(organization_id)s AND id = t.sales_event_id LIMIT 1
        ) AS e ON true
        JOIN LATERAL (
            SELECT external_id, name FROM stores
            WHERE organization_id = %(organization_id)s AND id = e.store_id LIMIT 1
        ) AS s ON true
        CROSS JOIN LATERAL (
            SELECT count(*) AS contents FROM ticket_collisions
            WHERE organization_id = %(organization_id)s AND sales_event_id = t.sales_event_id
        ) AS k
        ORDER BY {ordered}
        """,
        page,
        {"organization_id": organization_id},
        make=ListedCollision,
        is_reviewed=SQL("true" if is_reviewed else "false"),
    )


def position_of(collision: ListedCollision) -> Position:
    return format_timestamp(collision.last_seen_at), str(collision.sales_event_id)


async def count_open_collisions(tx: Tx, organization_id: UUID, *, count_max: int) -> int:
    return await tx.fetch_count(
        """
        SELECT count(*) FROM (
            SELECT FROM ticket_collision_totals
            WHERE organization_id = %s AND reviewed_at IS NULL
            ORDER BY last_seen_at, sales_event_id
            LIMIT %s
        ) AS counted
        """,
        (organization_id, count_max),
    )


async def find_collision(tx: Tx, organization_id: UUID, sale: StoredSale) -> Collision | None:
    """Return the attempts to send this ticket again, compared field by field; None if there were none."""
    review = await tx.fetch_first(
        Review,
        "SELECT {columns} FROM ticket_collision_totals WHERE organization_id = %s AND sales_event_id = %s",
        (organization_id, sale.id),
    )
    if review is None:
        return None
    rows = await tx.fetch(
        """
        SELECT first_seen_at, last_seen_at, times_seen, attempt::text
        FROM ticket_collisions
        WHERE organization_id = %s AND sales_event_id = %s
        ORDER BY first_seen_at, content_hash
        """,
        (organization_id, sale.id),
    )
    stored = _as_request(sale)
    comparisons = [
        AttemptComparison(first_seen_at, last_seen_at, times, compare(stored, msgspec.json.decode(attempt)))
        for first_seen_at, last_seen_at, times, attempt in rows
    ]
    return Collision(review, comparisons)


async def decide(
    tx: Tx, organization_id: UUID, sales_event_id: UUID, decision: Decision, *, note: str | None, decided_by: str
) -> bool:
    """Store the decision; return whether there was a collision to decide."""
    decided = await tx.execute(
        """
        UPDATE ticket_collision_totals
        SET reviewed_at = %(now)s, review = %(review)s, note = %(note)s, reviewed_by = %(reviewed_by)s
        WHERE organization_id = %(organization_id)s AND sales_event_id = %(sales_event_id)s
        """,
        {
            "organization_id": organization_id,
            "sales_event_id": sales_event_id,
            "now": tx.now,
            "review": decision.value,
            "note": note,
            "reviewed_by": decided_by,
        },
    )
    return decided > 0


def compare(stored: dict[str, Any], attempted: dict[str, Any]) -> list[FieldDifference]:
    """Return the fields that differ; each differing line of the ticket is one field. An attempt may name the store and
    the customer by external or canonical id, so in `stored` each is a list of both ids."""
    differences = []
    for field, value in stored.items():
        sent = attempted.get(field)
        if field in {"store_id", "profile_id"}:
            if sent not in (value or [None]):
                differences.append(FieldDifference(field, _to_json(value[-1] if value else None), _to_json(sent)))
        elif field == "line_items":
            differences += _compare_lines(value, sent or [])
        elif value != sent:
            differences.append(FieldDifference(field, _to_json(value), _to_json(sent)))
    return differences


def _compare_lines(stored: list[Any], attempted: list[Any]) -> list[FieldDifference]:
    rows = max(len(stored), len(attempted))
    pairs = [
        (stored[n] if n < len(stored) else None, attempted[n] if n < len(attempted) else None) for n in range(rows)
    ]
    return [
        FieldDifference(f"line_items[{n}]", _to_json(stored_line), _to_json(attempted_line))
        for n, (stored_line, attempted_line) in enumerate(pairs)
        if stored_line != attempted_line
    ]


def _as_request(sale: StoredSale) -> dict[str, Any]:
    """Return the stored ticket in the form of a request, with both ids that a request may use for a reference."""
    ticket: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(to_wire(sale)))
    store, profile = ticket.pop("store"), ticket.pop("profile")
    del ticket["id"], ticket["created_at"]
    return {
        **ticket,
        "store_id": [store["id"], store["external_id"]],
        "profile_id": None if profile is None else [profile["id"], profile["external_id"]],
    }


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
