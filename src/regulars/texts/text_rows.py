"""The SQL that inserts, locks, deletes and counts texts; `claims.py` has the SQL that sends them.

The origin of a text is what requested it, such as a campaign or a run of a journey; `step` tells the texts of an origin
apart.
"""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.kit.arrays import Bigints, Blobs, Ids, Labels, Texts, Timestamps, Uuids
from regulars.kit.columns import Columns, fill
from regulars.kit.db import Tx
from regulars.kit.time_zones import find_zone
from regulars.texts.model import TextRow

_IS_AMONG_STOPS: Final = """
    = ANY (ARRAY(
        SELECT origin_id FROM stopped_origins WHERE organization_id = %(organization_id)s AND due_at IS NULL {more}
    ))
"""
# SQL: whether the id before it is that of a paused or cancelled journey or campaign.
IS_STOPPED: Final = fill(_IS_AMONG_STOPS, more="")
# SQL: the same where rows are set aside, for a pause only: a resume comes after this transaction, and finds the rows.
# What was cancelled stays stopped for ever, so its texts are skipped, and its stop is not locked.
REMAINS_STOPPED: Final = fill(_IS_AMONG_STOPS, more="AND reason IS NULL FOR SHARE SKIP LOCKED")

_TEXT_COLUMNS: Final = Columns(
    id=Ids, origin_kind=Labels, origin_id=Ids, step=Labels, profile_id=Ids, number_hash=Blobs, phone_number=Texts,
    body=Texts, parts=Bigints, state=Labels, reason=Labels, due_at=Timestamps, expires_at=Timestamps,
    ended_at=Timestamps, priority=Bigints, document_id=Ids,
)  # fmt: skip
_INSERT_TEXTS: Final = _TEXT_COLUMNS.write(
    """
    INSERT INTO texts (organization_id, created_at, {columns})
    SELECT %(organization_id)s, %(now)s, it.* FROM {rows}
    ON CONFLICT (organization_id, origin_kind, origin_id, step) DO NOTHING
    RETURNING id
    """
)


async def insert_texts_if_new(tx: Tx, organization_id: UUID, texts: Sequence[TextRow]) -> set[UUID]:
    """Insert texts, and return the ids of those that were inserted. A step of an origin has only one text."""
    values = {"organization_id": organization_id, "now": tx.now, **_TEXT_COLUMNS.of(texts)}
    return set(await tx.fetch_column(_INSERT_TEXTS, values))


async def set_author(tx: Tx, organization_id: UUID, text_id: UUID, author_id: UUID) -> None:
    """Store which user wrote an answer to a customer."""
    await tx.execute(
        "UPDATE texts SET author_id = %s WHERE organization_id = %s AND id = %s", (author_id, organization_id, text_id)
    )


async def find_authors(tx: Tx, organization_id: UUID, text_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """The user who wrote each of the texts; a text of another origin, or of an unknown author, is absent."""
    return await tx.fetch_map(
        """
        SELECT id, author_id FROM texts
        WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND author_id IS NOT NULL
        """,
        (organization_id, list(text_ids)),
    )


async def lock_text(tx: Tx, organization_id: UUID, text_id: UUID) -> TextRow | None:
    return await tx.fetch_first(
        TextRow,
        "SELECT {columns} FROM texts WHERE organization_id = %s AND id = %s FOR UPDATE",
        (organization_id, text_id),
    )


async def is_any_in_flight_to_withdrawn(tx: Tx, organization_id: UUID, number_hashes: Collection[bytes] | None) -> bool:
    """Whether a text is being sent to one of the numbers (None: to any number) although the number has no consent.

    A text whose claim has expired does not count as being sent.
    """
    is_in_flight = await tx.fetch_value(
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
    return bool(is_in_flight)


async def find_text_ids_of(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes]
) -> list[UUID]:
    """The ids of the texts to these customers or to one of these numbers."""
    return await tx.fetch_column(
        """
        SELECT id FROM texts
        WHERE organization_id = %s AND (profile_id = ANY (%s::uuid[]) OR number_hash = ANY (%s::bytea[]))
        """,
        (organization_id, list(profile_ids), list(number_hashes)),
    )


async def lock_texts(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[tuple[UUID, str, int]]:
    """Lock texts in the order of their ids, like every transaction that locks several texts; return their ids, states
    and numbers of claims."""
    return await tx.fetch(
        """
        SELECT id, state, attempts FROM texts
        WHERE organization_id = %s AND id = ANY (%s::uuid[])
        ORDER BY id
        FOR UPDATE
        """,
        (organization_id, Uuids(text_id.bytes for text_id in ids)),
    )


async def delete_texts(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    await tx.execute(
        "DELETE FROM texts WHERE organization_id = %s AND id = ANY (%s::uuid[])", (organization_id, list(ids))
    )


async def load_zone(tx: Tx, organization_id: UUID) -> ZoneInfo:
    """The time zone of the organization."""
    name = await tx.fetch_value("SELECT time_zone FROM organizations WHERE id = %s", (organization_id,))
    return find_zone(name or "UTC")


_TOTAL_COLUMNS: Final = Columns(state=Labels, texts=Bigints, parts=Bigints)
_ADD_TOTALS: Final = _TOTAL_COLUMNS.write(
    """
    INSERT INTO text_totals (organization_id, day, {columns})
    SELECT %(organization_id)s, %(day)s, it.* FROM {rows}
    ORDER BY it.state
    ON CONFLICT (organization_id, day, state) DO UPDATE
    SET texts = text_totals.texts + EXCLUDED.texts, parts = text_totals.parts + EXCLUDED.parts
    """
)


async def add_totals(tx: Tx, organization_id: UUID, day: date, counts: Sequence[tuple[str, int, int]]) -> None:
    """Add texts and SMS parts to the totals of their new state; sorted, so that two workers never deadlock."""
    await tx.execute(_ADD_TOTALS, {"organization_id": organization_id, "day": day, **_TOTAL_COLUMNS.of_tuples(counts)})


_SIMULATED_COLUMNS: Final = Columns(id=Ids, text_id=Ids, phone_number=Texts, body=Texts)
_INSERT_SIMULATED: Final = _SIMULATED_COLUMNS.write(
    "INSERT INTO simulated_texts (organization_id, sent_at, {columns})"
    " SELECT %(organization_id)s, %(now)s, it.* FROM {rows}"
)


async def insert_simulated(tx: Tx, organization_id: UUID, sent: Sequence[tuple[UUID, UUID, str, str]]) -> None:
    """Insert texts that the simulator, which sends nothing, accepted: (id, id of the text, phone number, body)."""
    values = _SIMULATED_COLUMNS.of_tuples(sent)
    await tx.execute(_INSERT_SIMULATED, {"organization_id": organization_id, "now": tx.now, **values})


async def delete_simulator_texts(tx: Tx, organization_id: UUID, text_ids: list[UUID]) -> None:
    await tx.execute(
        "DELETE FROM simulated_texts WHERE organization_id = %s AND text_id = ANY (%s::uuid[])",
        (organization_id, text_ids),
    )
