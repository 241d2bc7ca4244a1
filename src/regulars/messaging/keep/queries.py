"""The SQL of what is kept: texts that go, and the totals that stay."""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import Final
from uuid import UUID

from regulars.kit.arrays import Bigints, Labels, Uuids
from regulars.kit.columns import Columns
from regulars.kit.db import Tx


async def delete_old_texts(tx: Tx, organization_id: UUID, *, before: datetime, limit: int) -> list[UUID]:
    rows = await tx.fetch(
        """
        DELETE FROM texts
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM texts
            WHERE organization_id = %(organization_id)s AND created_at < %(before)s AND due_at IS NULL
            ORDER BY created_at
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id
        """,
        {"organization_id": organization_id, "before": before, "limit": limit},
    )
    return [row[0] for row in rows]


async def find_texts_of(
    tx: Tx, organization_id: UUID, *, profile_ids: Collection[UUID], number_hashes: Collection[bytes]
) -> list[UUID]:
    rows = await tx.fetch(
        """
        SELECT id FROM texts
        WHERE organization_id = %s AND (profile_id = ANY (%s::uuid[]) OR number_hash = ANY (%s::bytea[]))
        """,
        (organization_id, list(profile_ids), list(number_hashes)),
    )
    return [row[0] for row in rows]


async def lock_texts(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[tuple[UUID, str]]:
    """With their states, in the order of their ids, as everybody locks several texts."""
    rows = await tx.fetch(
        """
        SELECT id, state FROM texts
        WHERE organization_id = %s AND id = ANY (%s::uuid[])
        ORDER BY id
        FOR UPDATE
        """,
        (organization_id, Uuids(it.bytes for it in ids)),
    )
    return [(row[0], row[1]) for row in rows]


async def delete_texts(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    await tx.execute(
        "DELETE FROM texts WHERE organization_id = %s AND id = ANY (%s::uuid[])", (organization_id, list(ids))
    )


async def blank_texts(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> None:
    """They say nothing any more; the hash of the number stays, by which a withdrawal waits for their sender."""
    await tx.execute(
        """
        UPDATE texts SET body = '', phone_number = NULL, profile_id = NULL
        WHERE organization_id = %s AND id = ANY (%s::uuid[])
        """,
        (organization_id, list(ids)),
    )


async def list_totals(tx: Tx, organization_id: UUID, day: date) -> list[tuple[str, int, int]]:
    rows = await tx.fetch(
        "SELECT state, texts, parts FROM text_totals WHERE organization_id = %s AND day = %s", (organization_id, day)
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def find_zone(tx: Tx, organization_id: UUID) -> str:
    rows = await tx.fetch("SELECT time_zone FROM organizations WHERE id = %s", (organization_id,))
    return str(rows[0][0]) if rows else "UTC"


_TOTALS: Final = Columns(state=Labels, texts=Bigints, parts=Bigints)
_ADD_TOTALS: Final = _TOTALS.write(
    """
    INSERT INTO text_totals (organization_id, day, {columns})
    SELECT %(organization_id)s, %(day)s, it.* FROM {rows}
    ORDER BY it.state
    ON CONFLICT (organization_id, day, state) DO UPDATE
    SET texts = text_totals.texts + EXCLUDED.texts, parts = text_totals.parts + EXCLUDED.parts
    """
)


async def add_totals(tx: Tx, organization_id: UUID, day: date, counts: Sequence[tuple[str, int, int]]) -> None:
    """Count texts and parts by the state they reached, states in order, so that two senders never wait in a circle."""
    await tx.execute(_ADD_TOTALS, {"organization_id": organization_id, "day": day, **_TOTALS.of_tuples(counts)})
