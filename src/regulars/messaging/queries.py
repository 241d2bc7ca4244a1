"""The SQL of outbound texts. Look-ups of several numbers go one number at a time through LATERAL: before the first
ANALYZE a list would be planned as a walk through everything the organization ever sent."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.arrays import Bigints, Blobs, Labels, Texts, Timestamps, Uuids
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest
from regulars.messaging.model import TextRow

_COLUMNS = SQL(
    """texts.id, texts.origin_kind, texts.origin_id, texts.step, texts.profile_id, texts.number_hash,
       texts.phone_number, texts.body, texts.parts, texts.state, texts.reason, texts.due_at, texts.expires_at,
       texts.attempts, texts.provider, texts.provider_id, texts.created_at, texts.claimed_at, texts.ended_at"""
)


async def insert_texts_if_new(tx: Tx, organization_id: UUID, texts: Sequence[TextRow]) -> set[UUID]:
    """The ids of those that were not asked for before: the key is (origin, step)."""
    rows = await tx.fetch(
        """
        INSERT INTO texts
            (organization_id, id, origin_kind, origin_id, step, profile_id, number_hash, phone_number, body, parts,
             state, reason, due_at, expires_at, created_at, ended_at)
        SELECT %(organization_id)s, it.id, it.origin_kind, it.origin_id, it.step, it.profile_id, it.number_hash,
               it.phone_number, it.body, it.parts, it.state, it.reason, it.due_at, it.expires_at, %(now)s,
               it.ended_at
        FROM unnest(%(ids)s::uuid[], %(origin_kinds)s::text[], %(origin_ids)s::uuid[], %(steps)s::text[],
                    %(profile_ids)s::uuid[], %(number_hashes)s::bytea[], %(phone_numbers)s::text[], %(bodies)s::text[],
                    %(parts)s::bigint[], %(states)s::text[], %(reasons)s::text[], %(dues)s::timestamptz[],
                    %(expiries)s::timestamptz[], %(ends)s::timestamptz[])
             AS it (id, origin_kind, origin_id, step, profile_id, number_hash, phone_number, body, parts, state,
                    reason, due_at, expires_at, ended_at)
        ON CONFLICT (organization_id, origin_kind, origin_id, step) DO NOTHING
        RETURNING id
        """,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "ids": Uuids(it.id.bytes for it in texts),
            "origin_kinds": Labels([it.origin_kind for it in texts]),
            "origin_ids": Uuids(it.origin_id.bytes for it in texts),
            "steps": Labels([it.step for it in texts]),
            "profile_ids": Uuids(None if it.profile_id is None else it.profile_id.bytes for it in texts),
            "number_hashes": Blobs(it.number_hash for it in texts),
            "phone_numbers": Texts(it.phone_number for it in texts),
            "bodies": Texts(it.body for it in texts),
            "parts": Bigints(it.parts for it in texts),
            "states": Labels([it.state for it in texts]),
            "reasons": Labels([it.reason for it in texts]),
            "dues": Timestamps(it.due_at for it in texts),
            "expiries": Timestamps(it.expires_at for it in texts),
            "ends": Timestamps(it.ended_at for it in texts),
        },
    )
    return {row[0] for row in rows}


class DueText(NamedTuple):
    id: UUID
    number_hash: bytes | None
    due_at: datetime


async def find_due_numbers(tx: Tx, organization_id: UUID, *, after: DueText | None, limit: int) -> list[DueText]:
    """Texts that are due with their numbers, without a lock: the numbers are locked first."""
    rows = await tx.fetch(
        """
        SELECT id, number_hash, due_at FROM texts
        WHERE organization_id = %(organization_id)s AND due_at <= %(now)s
          AND (due_at, id) > (COALESCE(%(after)s, '-infinity'::timestamptz), %(after_id)s::uuid)
        ORDER BY due_at, id
        LIMIT %(limit)s
        """,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "after": None if after is None else after.due_at,
            "after_id": UUID(int=0) if after is None else after.id,
            "limit": limit,
        },
    )
    return [DueText(*row) for row in rows]


async def lock_due_texts(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[TextRow]:
    """Those of them that are still due and that nobody else holds."""
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM texts
            WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND due_at <= %s
            ORDER BY due_at, id
            FOR UPDATE SKIP LOCKED
            """
        ).format(columns=_COLUMNS),
        (organization_id, Uuids(it.bytes for it in ids), tx.now),
    )
    return [TextRow(*row) for row in rows]


async def find_counted_times(
    tx: Tx, organization_id: UUID, number_hashes: Collection[bytes], *, since: datetime
) -> dict[bytes, list[datetime]]:
    """When texts that count against the cap were let through to each number.

    OFFSET 0 keeps the state out of the inner query: with it the planner walked through all the organization's sent
    texts for each number. The order is that of the index by number, which no other index gives: without it, and without
    statistics of the organization, any index that begins with the organization looks as good.
    """
    rows = await tx.fetch(
        """
        SELECT it.number_hash, found.claimed_at
        FROM unnest(%(number_hashes)s::bytea[]) AS it (number_hash)
        CROSS JOIN LATERAL (
            SELECT claimed_at, state, origin_kind FROM texts
            WHERE organization_id = %(organization_id)s AND number_hash = it.number_hash
            ORDER BY created_at
            OFFSET 0
        ) AS found
        WHERE found.state IN ('sending', 'unknown', 'sent', 'delivered') AND found.claimed_at > %(since)s
          AND found.origin_kind NOT IN ('stop', 'help')
        """,
        {"organization_id": organization_id, "number_hashes": Blobs(number_hashes), "since": since},
    )
    times: dict[bytes, list[datetime]] = {}
    for number_hash, moment in rows:
        times.setdefault(number_hash, []).append(moment)
    return times


async def claim_texts(
    tx: Tx, organization_id: UUID, ids: Collection[UUID], *, provider: str, owner: UUID, until: datetime
) -> None:
    await tx.execute(
        """
        UPDATE texts
        SET state = 'sending', owner = %(owner)s, due_at = %(until)s, claimed_at = %(now)s, provider = %(provider)s,
            provider_id = NULL, attempts = attempts + 1
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[])
        """,
        {
            "organization_id": organization_id,
            "ids": Uuids(it.bytes for it in ids),
            "owner": owner,
            "until": until,
            "now": tx.now,
            "provider": provider,
        },
    )


class Put(NamedTuple):
    """A text that goes back to the queue; `attempt` is the number of the claim it comes from, if it comes from one."""

    id: UUID
    due_at: datetime
    attempt: int = 0


async def postpone_texts(tx: Tx, organization_id: UUID, waits: Sequence[Put], *, owner: UUID | None = None) -> None:
    """Back to the queue until a moment each; nothing of them has left. With an owner, only where that claim stands. One
    that was paused meanwhile waits until it is resumed."""
    await tx.execute(
        """
        UPDATE texts
        SET state = 'queued', owner = NULL, claimed_at = NULL,
            due_at = CASE WHEN NOT texts.is_paused THEN it.due_at END
        FROM unnest(%(ids)s::uuid[], %(dues)s::timestamptz[], %(attempts)s::integer[]) AS it (id, due_at, attempt)
        WHERE texts.organization_id = %(organization_id)s AND texts.id = it.id
          AND (%(owner)s::uuid IS NULL OR (texts.owner = %(owner)s AND texts.attempts = it.attempt))
        """,
        {
            "organization_id": organization_id,
            "ids": [it.id for it in waits],
            "dues": [it.due_at for it in waits],
            "attempts": [it.attempt for it in waits],
            "owner": owner,
        },
    )


async def postpone_all_due(tx: Tx, organization_id: UUID, *, until: datetime, limit: int) -> int:
    """Put off what is queued and due; for an organization whose texts are held."""
    return await tx.execute(
        """
        UPDATE texts SET due_at = %(until)s
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND due_at <= %(now)s AND state = 'queued'
            ORDER BY due_at
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
        """,
        {"organization_id": organization_id, "until": until, "now": tx.now, "limit": limit},
    )


async def make_due(tx: Tx, organization_id: UUID, *, not_after: datetime) -> int:
    """Look now at everything that is queued for no later than a moment: after a release."""
    return await tx.execute(
        """
        UPDATE texts SET due_at = %(now)s
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND due_at > %(now)s AND due_at <= %(not_after)s
              AND state = 'queued'
            ORDER BY id
            FOR UPDATE
        ))
        """,
        {"organization_id": organization_id, "now": tx.now, "not_after": not_after},
    )


class Ended(NamedTuple):
    """What became of a text; `provider_id` is kept where the provider gave one."""

    id: UUID
    state: str
    reason: str | None
    provider_id: str | None = None
    # The number of the claim it comes from, if it comes from one.
    attempt: int = 0


async def end_texts(
    tx: Tx, organization_id: UUID, ended: Sequence[Ended], *, owner: UUID | None = None
) -> list[TextRow]:
    """Write outcomes; with an owner, only where its claim still stands. Gives the rows that changed."""
    rows = await tx.fetch(
        SQL(
            """
            UPDATE texts
            SET state = it.state, reason = it.reason, provider_id = COALESCE(it.provider_id, texts.provider_id),
                due_at = NULL, owner = NULL, ended_at = %(now)s
            FROM unnest(%(ids)s::uuid[], %(states)s::text[], %(reasons)s::text[], %(provider_ids)s::text[],
                        %(attempts)s::bigint[])
                 AS it (id, state, reason, provider_id, attempt)
            WHERE texts.organization_id = %(organization_id)s AND texts.id = it.id
              AND (%(owner)s::uuid IS NULL OR (texts.owner = %(owner)s AND texts.attempts = it.attempt))
            RETURNING {columns}
            """
        ).format(columns=_COLUMNS),
        {
            "organization_id": organization_id,
            "now": tx.now,
            "ids": Uuids(it.id.bytes for it in ended),
            "states": Labels([it.state for it in ended]),
            "reasons": Labels([it.reason for it in ended]),
            "provider_ids": Texts(it.provider_id for it in ended),
            "attempts": Bigints(it.attempt for it in ended),
            "owner": owner,
        },
    )
    return [TextRow(*row) for row in rows]


async def lock_queued_of(
    tx: Tx, organization_id: UUID, *, origin_kind: str, origin_ids: Collection[UUID]
) -> list[UUID]:
    """What waits for the sender, in the order in which everybody locks several texts."""
    rows = await tx.fetch(
        """
        SELECT id FROM texts
        WHERE organization_id = %s AND origin_kind = %s AND origin_id = ANY (%s::uuid[]) AND state = 'queued'
        ORDER BY id
        FOR UPDATE
        """,
        (organization_id, origin_kind, list(origin_ids)),
    )
    return [row[0] for row in rows]


async def find_text(tx: Tx, organization_id: UUID, text_id: UUID) -> TextRow | None:
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM texts WHERE organization_id = %s AND id = %s").format(columns=_COLUMNS),
        (organization_id, text_id),
    )
    return TextRow(*rows[0]) if rows else None


async def find_texts(tx: Tx, organization_id: UUID, text_ids: Collection[UUID]) -> list[TextRow]:
    rows = await tx.fetch(
        SQL(
            """
            SELECT {columns} FROM unnest(%s::uuid[]) AS wanted (id)
            CROSS JOIN LATERAL (SELECT * FROM texts WHERE organization_id = %s AND id = wanted.id LIMIT 1) AS texts
            """
        ).format(columns=_COLUMNS),
        (list(text_ids), organization_id),
    )
    return [TextRow(*row) for row in rows]


async def lock_text(tx: Tx, organization_id: UUID, text_id: UUID) -> TextRow | None:
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM texts WHERE organization_id = %s AND id = %s FOR UPDATE").format(columns=_COLUMNS),
        (organization_id, text_id),
    )
    return TextRow(*rows[0]) if rows else None


async def requeue_text(tx: Tx, organization_id: UUID, text_id: UUID, *, expires_at: datetime) -> None:
    await tx.execute(
        """
        UPDATE texts
        SET state = 'queued', reason = NULL, due_at = %(now)s, expires_at = %(expires_at)s, owner = NULL,
            claimed_at = NULL, ended_at = NULL, is_paused = false
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "id": text_id, "now": tx.now, "expires_at": expires_at},
    )


async def is_any_on_its_way_to_the_withdrawn(
    tx: Tx, organization_id: UUID, number_hashes: Collection[bytes] | None
) -> bool:
    """Whether a text is being sent to one of the numbers, or to any, that has no consent by now.

    A text whose claim has lapsed does not count as being sent.
    """
    rows = await tx.fetch(
        """
        SELECT EXISTS (
            SELECT 1 FROM texts
            JOIN subscriptions ON subscriptions.organization_id = %(organization_id)s
                AND subscriptions.number_hash = texts.number_hash
            WHERE texts.organization_id = %(organization_id)s AND texts.state = 'sending' AND texts.due_at > %(now)s
              AND texts.origin_kind NOT IN ('stop', 'help') AND subscriptions.status <> 'SUBSCRIBED'
              AND (%(number_hashes)s::bytea[] IS NULL OR texts.number_hash = ANY (%(number_hashes)s::bytea[]))
        )
        """,
        {
            "organization_id": organization_id,
            "number_hashes": None if number_hashes is None else list(number_hashes),
            "now": tx.now,
        },
    )
    return bool(rows[0][0])


async def was_texted(tx: Tx, organization_id: UUID, number_hash: bytes, *, origin_kind: str, since: datetime) -> bool:
    rows = await tx.fetch(
        """
        SELECT EXISTS (
            SELECT 1 FROM texts
            WHERE organization_id = %s AND number_hash = %s AND created_at > %s AND origin_kind = %s
        )
        """,
        (organization_id, number_hash, since, origin_kind),
    )
    return bool(rows[0][0])


async def list_texts_of(tx: Tx, organization_id: UUID, origin_kind: str, origin_id: UUID) -> list[TextRow]:
    """Of one origin, such as a run: one for each of its steps at most."""
    rows = await tx.fetch(
        SQL("SELECT {columns} FROM texts WHERE organization_id = %s AND origin_kind = %s AND origin_id = %s").format(
            columns=_COLUMNS
        ),
        (organization_id, origin_kind, origin_id),
    )
    return [TextRow(*row) for row in rows]


_NEWEST: Final = Keyset({"texts.id": UUID}, is_descending=True)
_FILTERS: Final = {
    "number_hash": "texts.number_hash = %(number_hash)s",
    "profile_id": "texts.profile_id = %(profile_id)s",
    "state": "texts.state = %(state)s",
}


async def list_texts(
    tx: Tx, organization_id: UUID, *, number_hash: bytes | None, profile_id: UUID | None, state: str | None, limit: int
) -> list[TextRow]:
    """The newest first."""
    return await _NEWEST.fetch(
        tx,
        SQL(
            """
            SELECT {columns} FROM texts
            WHERE texts.organization_id = %(organization_id)s {narrowed}
            ORDER BY {ordered}
            LIMIT %(limit)s
            """
        ),
        PageRequest(limit),
        {"organization_id": organization_id, "number_hash": number_hash, "profile_id": profile_id, "state": state},
        make=TextRow,
        filters=_FILTERS,
        columns=_COLUMNS,
    )
