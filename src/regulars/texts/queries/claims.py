"""The SQL of the queue that sends texts: find due texts, claim them, return them to the queue, and store their outcome.

A claim gives a text an owner, the worker that sends it, and a deadline. Phone numbers are looked up one at a time,
through LATERAL: before the first ANALYZE, PostgreSQL would plan a lookup of a list as a scan of all texts of the
organization.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Bigints, Blobs, Ids, Labels, Texts, Timestamps, Uuids
from regulars.kit.columns import Columns, fill, names_of
from regulars.kit.db import Tx
from regulars.texts.model import KEYWORD_MEANINGS, TextRow
from regulars.texts.text_rows import IS_STOPPED

_COLUMNS: Final = names_of(TextRow, "texts")
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


class DueText(NamedTuple):
    id: UUID
    number_hash: bytes | None
    due_at: datetime
    priority: int
    phone_number: str | None
    # Whether the text has to wait for the end of a pause or a hold; an expired text does not.
    is_stopped: bool


_FIND_DUE: Final = fill(
    """
    SELECT {columns}
    FROM unnest(ARRAY[0, 1, 2]::smallint[]) AS level (number)
    CROSS JOIN LATERAL (
        SELECT id, number_hash, due_at, priority, phone_number, {is_stopped} AS is_stopped FROM texts
        WHERE organization_id = %(organization_id)s AND due_at IS NOT NULL
          AND (priority, due_at, id) > (
              level.number,
              CASE WHEN level.number = %(after_priority)s THEN %(after)s::timestamptz ELSE '-infinity' END,
              %(after_id)s::uuid
          )
          AND (priority, due_at) <= (level.number, %(now)s::timestamptz)
          AND NOT (%(skips_stopped)s AND {is_stopped})
        ORDER BY priority, due_at, id
        LIMIT %(limit)s
    ) AS found
    WHERE level.number BETWEEN %(after_priority)s::smallint AND %(lowest)s::smallint
    LIMIT %(limit)s
    """,
    is_stopped="(state = 'queued' AND expires_at > %(now)s"
    " AND (%(is_on_hold)s OR COALESCE(document_id, origin_id)" + IS_STOPPED + "))",
)


async def find_due_texts(
    tx: Tx,
    organization_id: UUID,
    *,
    lowest: int,
    after: DueText | None,
    limit: int,
    is_on_hold: bool = False,
    skips_stopped: bool = False,
) -> list[DueText]:
    """Due texts with their phone numbers, most urgent first; `lowest` is the least urgent priority (the highest number)
    to find. The texts are not locked, because the caller must lock the numbers first.

    Each priority is a range of the index, and its rows are read only until the limit is reached. So texts of a lower
    priority, and texts that are not due yet, cost nothing, however many there are. The priority is compared within
    rows, because the planner might treat one in `=` as constant and read the due texts of all priorities.
    """
    return await tx.fetch_all(
        DueText,
        _FIND_DUE,
        {
            "organization_id": organization_id,
            "now": tx.now,
            "lowest": lowest,
            "after": _EARLIEST if after is None else after.due_at,
            "after_id": UUID(int=0) if after is None else after.id,
            "after_priority": 0 if after is None else after.priority,
            "limit": limit,
            "is_on_hold": is_on_hold,
            "skips_stopped": skips_stopped,
        },
    )


async def lock_due_texts(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[TextRow]:
    """Lock the texts that are still due and that no other transaction has locked, and return them."""
    return await tx.fetch_all(
        TextRow,
        """
        SELECT {columns} FROM texts
        WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND due_at <= %s
        ORDER BY priority, due_at, id
        FOR UPDATE SKIP LOCKED
        """,
        (organization_id, Uuids(text_id.bytes for text_id in ids), tx.now),
    )


class CountedText(NamedTuple):
    """A text that counts against the frequency caps of its number."""

    id: UUID
    claimed_at: datetime


async def find_counted_texts(
    tx: Tx, organization_id: UUID, number_hashes: Collection[bytes], *, since: datetime
) -> dict[bytes, list[CountedText]]:
    """For each number, the texts that count against its frequency caps and were claimed after `since`.

    OFFSET 0 stops the planner from moving the filter by state into the inner query, which would scan all sent texts of
    the organization for each number.
    """
    rows = await tx.fetch(
        """
        SELECT it.number_hash, found.id, found.claimed_at
        FROM unnest(%(number_hashes)s::bytea[]) AS it (number_hash)
        CROSS JOIN LATERAL (
            SELECT id, claimed_at, state, origin_kind, is_outside_cap FROM texts
            WHERE organization_id = %(organization_id)s AND number_hash = it.number_hash
            OFFSET 0
        ) AS found
        WHERE found.state IN ('sending', 'unknown', 'sent', 'delivered') AND found.claimed_at > %(since)s
          AND found.origin_kind NOT IN ('stop', 'help', 'test') AND NOT found.is_outside_cap
        """,
        {"organization_id": organization_id, "number_hashes": Blobs(number_hashes), "since": since},
    )
    texts: dict[bytes, list[CountedText]] = {}
    for number_hash, *text in rows:
        texts.setdefault(number_hash, []).append(CountedText(*text))
    return texts


class AnsweredReply(NamedTuple):
    """A customer's message, and how many answers to it were sent or may have been sent."""

    id: UUID
    received_at: datetime
    answers: int


async def find_answered_replies(
    tx: Tx, organization_id: UUID, reply_ids: Collection[UUID]
) -> dict[UUID, AnsweredReply]:
    """The messages that may be answered; keywords such as STOP are left out."""
    rows = await tx.fetch(
        """
        SELECT replies.id, replies.received_at, (
            SELECT count(*) FROM texts
            WHERE organization_id = replies.organization_id AND origin_kind = 'answer' AND origin_id = replies.id
              AND state IN ('sending', 'unknown', 'sent', 'delivered')
        )
        FROM replies
        WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND NOT meaning = ANY (%s::text[])
        """,
        (organization_id, Uuids(reply_id.bytes for reply_id in reply_ids), sorted(KEYWORD_MEANINGS)),
    )
    return {row[0]: AnsweredReply(*row) for row in rows}


async def claim_texts(
    tx: Tx,
    organization_id: UUID,
    ids: Collection[UUID],
    *,
    outside_cap: Collection[UUID] = (),
    provider: str,
    owner: UUID,
    until: datetime,
) -> None:
    """Claim texts for sending; those in `outside_cap` do not count in the frequency caps."""
    await tx.execute(
        """
        UPDATE texts
        SET state = 'sending', owner = %(owner)s, due_at = %(until)s, claimed_at = %(now)s, provider = %(provider)s,
            provider_id = NULL, attempts = attempts + 1,
            is_outside_cap = is_outside_cap OR id = ANY (%(outside_cap)s::uuid[])
        WHERE organization_id = %(organization_id)s AND id = ANY (%(ids)s::uuid[])
        """,
        {
            "organization_id": organization_id,
            "ids": Uuids(text_id.bytes for text_id in ids),
            "outside_cap": Uuids(text_id.bytes for text_id in outside_cap),
            "owner": owner,
            "until": until,
            "now": tx.now,
            "provider": provider,
        },
    )


class Postponement(NamedTuple):
    """A text that returns to the queue; `attempt` is the number of its claim, from 1, or 0 if it was not claimed, and
    `tries` how often it was dialled in this claim."""

    id: UUID
    due_at: datetime
    attempt: int = 0
    tries: int = 0


_POSTPONEMENTS: Final = Columns(id=Ids, due_at=Timestamps, attempt=Bigints, tries=Bigints)
_POSTPONE: Final = _POSTPONEMENTS.write(
    """
    UPDATE texts
    SET state = 'queued', owner = NULL, claimed_at = NULL, tries = texts.tries + it.tries, due_at = it.due_at,
        provider = CASE WHEN it.attempt > 0 THEN texts.provider END
    FROM {rows}
    WHERE texts.organization_id = %(organization_id)s AND texts.id = it.id
      AND (%(owner)s::uuid IS NULL OR (texts.owner = %(owner)s AND texts.attempts = it.attempt))
    """
)


async def postpone_texts(
    tx: Tx, organization_id: UUID, postponed: Sequence[Postponement], *, owner: UUID | None = None
) -> None:
    """Queue unsent texts again. With an owner, only texts that this owner still claims. Only a text that was claimed
    has a provider, so a short wait for its next try differs from a wait for the opening hour."""
    await tx.execute(_POSTPONE, {"organization_id": organization_id, "owner": owner, **_POSTPONEMENTS.of(postponed)})


_DELETE_IN_QUEUE: Final = _POSTPONEMENTS.write(
    """
    DELETE FROM texts USING {rows}
    WHERE texts.organization_id = %(organization_id)s AND texts.id = it.id
      AND (%(owner)s::uuid IS NULL OR (texts.owner = %(owner)s AND texts.attempts = it.attempt))
    RETURNING {changed}
    """,
    changed=_COLUMNS,
)


async def delete_texts_in_queue(
    tx: Tx, organization_id: UUID, postponed: Sequence[Postponement], *, owner: UUID | None = None
) -> list[TextRow]:
    """Delete unsent texts instead of queueing them again; with an owner, only texts that this owner still claims."""
    values = {"organization_id": organization_id, "owner": owner, **_POSTPONEMENTS.of(postponed)}
    return [TextRow(*row) for row in await tx.fetch(_DELETE_IN_QUEUE, values)]


class EndedText(NamedTuple):
    """The final state of a text; without a `provider_id` the stored `provider_id` remains."""

    id: UUID
    state: str
    reason: str | None
    provider_id: str | None = None
    # The number of its claim, from 1, or 0 if it was not claimed, and how often it was dialled in this claim.
    attempt: int = 0
    tries: int = 0


_ENDED_COLUMNS: Final = Columns(id=Ids, state=Labels, reason=Labels, provider_id=Texts, attempt=Bigints, tries=Bigints)
_END_TEXTS: Final = _ENDED_COLUMNS.write(
    """
    UPDATE texts
    SET state = it.state, reason = it.reason, provider_id = COALESCE(it.provider_id, texts.provider_id),
        due_at = NULL, held_by = NULL, owner = NULL, ended_at = %(now)s, tries = texts.tries + it.tries
    FROM {rows}
    WHERE texts.organization_id = %(organization_id)s AND texts.id = it.id
      AND (%(owner)s::uuid IS NULL OR (texts.owner = %(owner)s AND texts.attempts = it.attempt))
    RETURNING {changed}
    """,
    changed=_COLUMNS,
)


async def end_texts(
    tx: Tx, organization_id: UUID, ended: Sequence[EndedText], *, owner: UUID | None = None
) -> list[TextRow]:
    """Store final states, and return the changed rows; with an owner, only of texts that this owner still claims."""
    values = {"organization_id": organization_id, "now": tx.now, "owner": owner, **_ENDED_COLUMNS.of(ended)}
    return [TextRow(*row) for row in await tx.fetch(_END_TEXTS, values)]
