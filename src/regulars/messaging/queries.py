"""The SQL of outbound texts. Look-ups of several numbers go one number at a time through LATERAL: before the first
ANALYZE a list would be planned as a walk through everything the organization ever sent."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg.sql import SQL

from regulars.kit.arrays import Bigints, Blobs, Ids, Labels, Texts, Timestamps, Uuids
from regulars.kit.columns import Columns, names_of
from regulars.kit.db import Tx
from regulars.kit.keyset import Keyset, PageRequest
from regulars.messaging.model import TextRow

_COLUMN_LIST: Final = names_of(TextRow, "texts")
_COLUMNS: Final = SQL(_COLUMN_LIST)
_NEW_TEXTS: Final = Columns(
    id=Ids, origin_kind=Labels, origin_id=Ids, step=Labels, profile_id=Ids, number_hash=Blobs, phone_number=Texts,
    body=Texts, parts=Bigints, state=Labels, reason=Labels, due_at=Timestamps, expires_at=Timestamps,
    ended_at=Timestamps,
)  # fmt: skip
_INSERT_TEXTS: Final = _NEW_TEXTS.write(
    """
    INSERT INTO texts (organization_id, created_at, {columns})
    SELECT %(organization_id)s, %(now)s, it.* FROM {rows}
    ON CONFLICT (organization_id, origin_kind, origin_id, step) DO NOTHING
    RETURNING id
    """
)


async def insert_texts_if_new(tx: Tx, organization_id: UUID, texts: Sequence[TextRow]) -> set[UUID]:
    """The ids of those that were not asked for before: the key is (origin, step)."""
    rows = await tx.fetch(_INSERT_TEXTS, {"organization_id": organization_id, "now": tx.now, **_NEW_TEXTS.of(texts)})
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


_WAITS: Final = Columns(id=Ids, due_at=Timestamps, attempt=Bigints)
_POSTPONE: Final = _WAITS.write(
    """
    UPDATE texts
    SET state = 'queued', owner = NULL, claimed_at = NULL,
        due_at = CASE WHEN NOT texts.is_paused THEN it.due_at END
    FROM {rows}
    WHERE texts.organization_id = %(organization_id)s AND texts.id = it.id
      AND (%(owner)s::uuid IS NULL OR (texts.owner = %(owner)s AND texts.attempts = it.attempt))
    """
)


async def postpone_texts(tx: Tx, organization_id: UUID, waits: Sequence[Put], *, owner: UUID | None = None) -> None:
    """Back to the queue until a moment each; nothing of them has left. With an owner, only where that claim stands. One
    that was paused meanwhile waits until it is resumed."""
    await tx.execute(_POSTPONE, {"organization_id": organization_id, "owner": owner, **_WAITS.of(waits)})


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


_ENDED: Final = Columns(id=Ids, state=Labels, reason=Labels, provider_id=Texts, attempt=Bigints)
_END_TEXTS: Final = _ENDED.write(
    """
    UPDATE texts
    SET state = it.state, reason = it.reason, provider_id = COALESCE(it.provider_id, texts.provider_id),
        due_at = NULL, owner = NULL, ended_at = %(now)s
    FROM {rows}
    WHERE texts.organization_id = %(organization_id)s AND texts.id = it.id
      AND (%(owner)s::uuid IS NULL OR (texts.owner = %(owner)s AND texts.attempts = it.attempt))
    RETURNING {changed}
    """,
    changed=_COLUMN_LIST,
)


async def end_texts(
    tx: Tx, organization_id: UUID, ended: Sequence[Ended], *, owner: UUID | None = None
) -> list[TextRow]:
    """Write outcomes; with an owner, only where its claim still stands. Gives the rows that changed."""
    values = {"organization_id": organization_id, "now": tx.now, "owner": owner, **_ENDED.of(ended)}
    return [TextRow(*row) for row in await tx.fetch(_END_TEXTS, values)]


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
