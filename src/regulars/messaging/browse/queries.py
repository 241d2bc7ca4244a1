"""The SQL of lists of texts and replies: a page out of an index, then the names of its customers."""

from collections.abc import Sequence
from typing import Final, LiteralString
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest, PageRows
from regulars.messaging.browse.model import MessageLine, NumberLine, Wanted
from regulars.messaging.inbox.model import ReplyRow
from regulars.messaging.model import TextRow

_NEWEST: Final = Keyset({"t.id": UUID}, is_descending=True)
_BETWEEN: Final[dict[str, LiteralString]] = {"since": "t.id >= %(since)s", "until": "t.id < %(until)s"}
_TEXT_FILTERS: Final = {
    **_BETWEEN,
    "state": "t.state = %(state)s",
    "reason": "substring(t.reason FROM '^[a-z_]+') = %(reason)s AND t.reason IS NOT NULL",
}
_REPLY_FILTERS: Final = {**_BETWEEN, "is_undecided": "t.decided IS NULL"}
_LIST: Final = SQL(
    """
    SELECT t.id, t.is_received, t.at, t.number_hash, t.phone_number, t.profile_id, p.first_name, p.last_name,
           p.external_id, t.body, t.parts, t.origin_kind, t.state, t.reason, t.origin_id
    FROM (
        SELECT t.id, t.number_hash, t.phone_number, t.profile_id, t.body, {columns}
        FROM {table} AS t
        WHERE t.organization_id = %(organization_id)s {narrowed} {beyond}
        ORDER BY {ordered}
        LIMIT %(limit)s
    ) AS t
    LEFT JOIN profiles AS p ON p.organization_id = %(organization_id)s AND p.id = t.profile_id
    ORDER BY {ordered}
    """
)


async def list_texts(tx: Tx, organization_id: UUID, wanted: Wanted, page: PageRequest) -> PageRows[MessageLine]:
    """Texts, the newest first."""
    return await _NEWEST.fetch(
        tx,
        _LIST,
        page,
        {"organization_id": organization_id, **wanted._asdict()},
        make=MessageLine,
        filters=_TEXT_FILTERS,
        table=SQL("texts"),
        columns=SQL("false AS is_received, t.created_at AS at, t.parts, t.origin_kind, t.state, t.reason, t.origin_id"),
    )


async def list_replies(tx: Tx, organization_id: UUID, wanted: Wanted, page: PageRequest) -> PageRows[MessageLine]:
    """Replies in the same order."""
    return await _NEWEST.fetch(
        tx,
        _LIST,
        page,
        {"organization_id": organization_id, **wanted._asdict()},
        make=MessageLine,
        filters=_REPLY_FILTERS,
        table=SQL("replies"),
        columns=SQL(
            "true AS is_received, t.received_at AS at, 0 AS parts, 'reply' AS origin_kind, t.meaning AS state,"
            " t.decided AS reason, NULL::uuid AS origin_id"
        ),
    )


async def list_texts_of_number(tx: Tx, organization_id: UUID, number_hash: bytes, *, limit: int) -> list[TextRow]:
    """The last ones, the newest first, in the order of the number's own index."""
    rows = await tx.fetch(
        """
        SELECT id, origin_kind, origin_id, step, profile_id, number_hash, phone_number, body, parts, state, reason,
               due_at, expires_at, attempts, provider, provider_id, created_at, claimed_at, ended_at
        FROM texts
        WHERE organization_id = %s AND number_hash = %s
        ORDER BY created_at DESC
        LIMIT %s
        """,
        (organization_id, number_hash, limit),
    )
    return [TextRow(*row) for row in rows]


async def list_replies_of_number(tx: Tx, organization_id: UUID, number_hash: bytes, *, limit: int) -> list[ReplyRow]:
    rows = await tx.fetch(
        """
        SELECT id, provider, provider_id, number_hash, phone_number, profile_id, body, meaning, decided, decided_by,
               decided_at, due_at, received_at
        FROM replies
        WHERE organization_id = %s AND number_hash = %s
        ORDER BY received_at DESC
        LIMIT %s
        """,
        (organization_id, number_hash, limit),
    )
    return [ReplyRow(*row) for row in rows]


async def list_texts_of_person(
    tx: Tx, organization_id: UUID, *, profile_id: UUID, number_hashes: Sequence[bytes], after: UUID, limit: int
) -> list[TextRow]:
    """What was sent to the person or to one of their numbers, the oldest first."""
    rows = await tx.fetch(
        """
        SELECT id, origin_kind, origin_id, step, profile_id, number_hash, phone_number, body, parts, state, reason,
               due_at, expires_at, attempts, provider, provider_id, created_at, claimed_at, ended_at
        FROM texts
        WHERE organization_id = %s AND (profile_id = %s OR number_hash = ANY (%s::bytea[])) AND id > %s
        ORDER BY id
        LIMIT %s
        """,
        (organization_id, profile_id, list(number_hashes), after, limit),
    )
    return [TextRow(*row) for row in rows]


async def list_replies_of_person(
    tx: Tx, organization_id: UUID, *, profile_id: UUID, number_hashes: Sequence[bytes], after: UUID, limit: int
) -> list[ReplyRow]:
    """What came from the person or from one of their numbers, the oldest first."""
    rows = await tx.fetch(
        """
        SELECT id, provider, provider_id, number_hash, phone_number, profile_id, body, meaning, decided, decided_by,
               decided_at, due_at, received_at
        FROM replies
        WHERE organization_id = %s AND (profile_id = %s OR number_hash = ANY (%s::bytea[])) AND id > %s
        ORDER BY id
        LIMIT %s
        """,
        (organization_id, profile_id, list(number_hashes), after, limit),
    )
    return [ReplyRow(*row) for row in rows]


async def list_texts_of_origin(
    tx: Tx, organization_id: UUID, origin_kinds: Sequence[str], origin_id: UUID
) -> list[TextRow]:
    """What somebody asked for; one look-up for each kind."""
    rows = await tx.fetch(
        """
        SELECT t.id, t.origin_kind, t.origin_id, t.step, t.profile_id, t.number_hash, t.phone_number, t.body, t.parts,
               t.state, t.reason, t.due_at, t.expires_at, t.attempts, t.provider, t.provider_id, t.created_at,
               t.claimed_at, t.ended_at
        FROM unnest(%(kinds)s::text[]) AS it (kind)
        CROSS JOIN LATERAL (
            SELECT * FROM texts
            WHERE organization_id = %(organization_id)s AND origin_kind = it.kind AND origin_id = %(origin_id)s
        ) AS t
        ORDER BY t.id
        """,
        {"organization_id": organization_id, "kinds": list(origin_kinds), "origin_id": origin_id},
    )
    return [TextRow(*row) for row in rows]


async def list_last_simulated(tx: Tx, organization_id: UUID, *, limit: int) -> list[NumberLine]:
    """What the simulator's phones got last; the same number may stand here more than once."""
    rows = await tx.fetch(
        """
        SELECT t.number_hash, s.phone_number, s.sent_at, s.body, p.first_name, p.last_name
        FROM (
            SELECT id, text_id, phone_number, body, sent_at FROM simulated_texts
            WHERE organization_id = %(organization_id)s
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS s
        CROSS JOIN LATERAL (
            SELECT number_hash, profile_id FROM texts
            WHERE organization_id = %(organization_id)s AND id = s.text_id AND number_hash IS NOT NULL
            LIMIT 1
        ) AS t
        LEFT JOIN LATERAL (
            SELECT first_name, last_name FROM profiles
            WHERE organization_id = %(organization_id)s AND id = t.profile_id
            LIMIT 1
        ) AS p ON true
        ORDER BY s.id DESC
        """,
        {"organization_id": organization_id, "limit": limit},
    )
    return [NumberLine(*row) for row in rows]


async def list_last_replies(tx: Tx, organization_id: UUID, *, limit: int) -> list[NumberLine]:
    """What was replied last, whoever brought it."""
    rows = await tx.fetch(
        """
        SELECT r.number_hash, r.phone_number, r.received_at, r.body, p.first_name, p.last_name
        FROM (
            SELECT id, number_hash, phone_number, received_at, body, profile_id FROM replies
            WHERE organization_id = %(organization_id)s
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS r
        LEFT JOIN LATERAL (
            SELECT first_name, last_name FROM profiles
            WHERE organization_id = %(organization_id)s AND id = r.profile_id
            LIMIT 1
        ) AS p ON true
        ORDER BY r.id DESC
        """,
        {"organization_id": organization_id, "limit": limit},
    )
    return [NumberLine(*row) for row in rows]


async def count_undecided(tx: Tx, organization_id: UUID, *, most: int) -> int:
    rows = await tx.fetch(
        """
        SELECT count(*) FROM (
            SELECT 1 FROM replies WHERE organization_id = %s AND decided IS NULL ORDER BY id LIMIT %s
        ) AS waiting
        """,
        (organization_id, most),
    )
    return int(rows[0][0])
