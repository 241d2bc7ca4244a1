"""The SQL of segments, their versions, their sizes, the attributes and properties (keys) they read, and their uses: the
segments, journeys and campaigns that use a segment, by kind and id.

A segment is counted again when `due_at` has passed; `owner` is the worker that counts it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.kit.time_zones import find_zone
from regulars.segments.saved.model import SegmentRow, SegmentVersionRow, SizeRow, UseRow


async def lock_segments(tx: Tx, organization_id: UUID) -> None:
    """Serialises writers of `segment_uses` until the transaction ends: two concurrent changes could create a
    circular reference."""
    await tx.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('segments ' || %(organization_id)s::text, 0))",
        {"organization_id": organization_id},
    )


async def load_zone(tx: Tx, organization_id: UUID) -> ZoneInfo:
    name = await tx.fetch_value("SELECT time_zone FROM organizations WHERE id = %s", (organization_id,))
    return find_zone(name or "UTC")


async def insert_segment(tx: Tx, organization_id: UUID, segment_id: UUID, name: str) -> None:
    await tx.execute(
        """
        INSERT INTO segments (organization_id, id, name, version, created_at, updated_at, due_at)
        VALUES (%(organization_id)s, %(id)s, %(name)s, 0, %(now)s, %(now)s, %(now)s)
        """,
        {"organization_id": organization_id, "id": segment_id, "name": name, "now": tx.now},
    )


async def update_segment(tx: Tx, organization_id: UUID, row: SegmentRow) -> None:
    await tx.execute(
        """
        UPDATE segments
        SET name = %(name)s, version = %(version)s, updated_at = %(now)s, due_at = %(now)s, owner = NULL
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, "id": row.id, "name": row.name, "version": row.version, "now": tx.now},
    )


async def insert_version(
    tx: Tx, organization_id: UUID, segment_id: UUID, *, version: int, definition: str, created_by: str | None
) -> None:
    await tx.execute(
        """
        INSERT INTO segment_versions (organization_id, segment_id, version, definition, created_at, created_by)
        VALUES (%s, %s, %s, %s::json, %s, %s)
        """,
        (organization_id, segment_id, version, definition, tx.now, created_by),
    )


async def delete_segment(tx: Tx, organization_id: UUID, segment_id: UUID) -> None:
    await tx.execute("DELETE FROM segments WHERE organization_id = %s AND id = %s", (organization_id, segment_id))


_DELETE_ROWS: Final = "DELETE FROM {table} WHERE organization_id = %s AND segment_id = %s"


async def delete_versions(tx: Tx, organization_id: UUID, segment_id: UUID) -> None:
    await tx.execute(fill(_DELETE_ROWS, table="segment_versions"), (organization_id, segment_id))


async def find_segment(tx: Tx, organization_id: UUID, segment_id: UUID) -> SegmentRow | None:
    return await tx.fetch_first(
        SegmentRow,
        "SELECT {columns} FROM segments WHERE organization_id = %s AND id = %s",
        (organization_id, segment_id),
    )


async def count_segments(tx: Tx, organization_id: UUID) -> int:
    return await tx.fetch_count("SELECT count(*) FROM segments WHERE organization_id = %s", (organization_id,))


async def find_version(tx: Tx, organization_id: UUID, segment_id: UUID, version: int) -> SegmentVersionRow | None:
    return await tx.fetch_first(
        SegmentVersionRow,
        """
        SELECT version, definition::text, created_at, created_by, total FROM segment_versions
        WHERE organization_id = %s AND segment_id = %s AND version = %s
        """,
        (organization_id, segment_id, version),
    )


async def find_changers(
    tx: Tx, organization_id: UUID, known: Mapping[UUID, int | None], *, since: datetime
) -> list[str]:
    return await tx.fetch_column(
        """
        SELECT DISTINCT it.created_by FROM unnest(%s::uuid[], %s::bigint[]) AS known (id, version)
        JOIN segment_versions AS it ON it.organization_id = %s AND it.segment_id = known.id
            AND (it.version > known.version OR (known.version IS NULL AND it.created_at > %s))
        WHERE it.created_by IS NOT NULL
        """,
        ([*known], [*known.values()], organization_id, since),
    )


async def find_current(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[tuple[UUID, str, int, str]]:
    """Id, name, version and definition of the current version of segments."""
    return await tx.fetch(
        """
        SELECT segments.id, segments.name, segments.version, segment_versions.definition::text
        FROM segments
        JOIN segment_versions ON segment_versions.organization_id = %(organization_id)s
            AND segment_versions.segment_id = segments.id AND segment_versions.version = segments.version
        WHERE segments.organization_id = %(organization_id)s AND segments.id = ANY (%(ids)s::uuid[])
        """,
        {"organization_id": organization_id, "ids": list(ids)},
    )


async def delete_uses(tx: Tx, organization_id: UUID, *, kind: str, used_by_id: UUID) -> None:
    await tx.execute(
        "DELETE FROM segment_uses WHERE organization_id = %s AND user_kind = %s AND user_id = %s",
        (organization_id, kind, used_by_id),
    )


async def insert_uses(
    tx: Tx, organization_id: UUID, segment_ids: Collection[UUID], *, kind: str, used_by_id: UUID
) -> None:
    await tx.execute(
        """
        INSERT INTO segment_uses (organization_id, segment_id, user_kind, user_id)
        SELECT %(organization_id)s, it.id, %(kind)s, %(used_by_id)s FROM unnest(%(ids)s::uuid[]) AS it (id)
        ON CONFLICT DO NOTHING
        """,
        {"organization_id": organization_id, "ids": sorted(segment_ids), "kind": kind, "used_by_id": used_by_id},
    )


async def find_uses(tx: Tx, organization_id: UUID, segment_ids: Collection[UUID]) -> list[UseRow]:
    return await tx.fetch_all(
        UseRow,
        """
        SELECT segment_id, user_kind, user_id FROM segment_uses
        WHERE organization_id = %s AND segment_id = ANY (%s::uuid[])
        ORDER BY segment_id, user_kind, user_id
        """,
        (organization_id, list(segment_ids)),
    )


async def find_used_by(tx: Tx, organization_id: UUID, *, kind: str, used_by_ids: Collection[UUID]) -> list[UUID]:
    """The segments that these objects of one kind (segments, journeys or campaigns) use."""
    return await tx.fetch_column(
        """
        SELECT DISTINCT segment_id FROM segment_uses
        WHERE organization_id = %s AND user_kind = %s AND user_id = ANY (%s::uuid[])
        """,
        (organization_id, kind, list(used_by_ids)),
    )


async def delete_keys(tx: Tx, organization_id: UUID, segment_id: UUID) -> None:
    await tx.execute(fill(_DELETE_ROWS, table="segment_keys"), (organization_id, segment_id))


async def insert_keys(tx: Tx, organization_id: UUID, segment_id: UUID, keys: Sequence[tuple[str, str]]) -> None:
    """Insert the keys that a segment reads, as pairs of catalog (attributes or product properties) and key."""
    await tx.execute(
        """
        INSERT INTO segment_keys (organization_id, catalog, key, segment_id)
        SELECT %(organization_id)s, it.catalog, it.key, %(segment_id)s
        FROM unnest(%(catalogs)s::text[], %(keys)s::text[]) AS it (catalog, key)
        ON CONFLICT DO NOTHING
        """,
        {
            "organization_id": organization_id,
            "segment_id": segment_id,
            "catalogs": [catalog for catalog, _ in keys],
            "keys": [key for _, key in keys],
        },
    )


async def find_today(tx: Tx, organization_id: UUID) -> date:
    return tx.now.astimezone(await load_zone(tx, organization_id)).date()


async def upsert_size_if_current(tx: Tx, organization_id: UUID, segment_id: UUID, row: SizeRow) -> None:
    """Store a size only if the segment still has the version that was counted. The row lock serialises this with a
    deletion."""
    await tx.execute(
        """
        INSERT INTO segment_sizes (organization_id, segment_id, day, version, total, may_be_texted, counted_at)
        SELECT %(organization_id)s, id, %(day)s, version, %(total)s, %(may_be_texted)s, %(counted_at)s FROM segments
        WHERE organization_id = %(organization_id)s AND id = %(segment_id)s AND version = %(version)s
        FOR KEY SHARE
        ON CONFLICT (organization_id, segment_id, day) DO UPDATE
        SET version = EXCLUDED.version, total = EXCLUDED.total, may_be_texted = EXCLUDED.may_be_texted,
            counted_at = EXCLUDED.counted_at
        """,
        {"organization_id": organization_id, "segment_id": segment_id, **row._asdict()},
    )


async def update_version_total_if_none(
    tx: Tx, organization_id: UUID, segment_id: UUID, *, version: int, total: int
) -> None:
    await tx.execute(
        """
        UPDATE segment_versions SET total = %s
        WHERE organization_id = %s AND segment_id = %s AND version = %s AND total IS NULL
        """,
        (total, organization_id, segment_id, version),
    )


async def delete_old_sizes(tx: Tx, organization_id: UUID, segment_id: UUID, *, before: date) -> None:
    await tx.execute(
        "DELETE FROM segment_sizes WHERE organization_id = %s AND segment_id = %s AND day < %s",
        (organization_id, segment_id, before),
    )


async def delete_sizes(tx: Tx, organization_id: UUID, segment_id: UUID) -> None:
    await tx.execute(fill(_DELETE_ROWS, table="segment_sizes"), (organization_id, segment_id))


async def claim_due_segments(tx: Tx, organization_id: UUID, *, limit: int, owner: UUID, until: datetime) -> list[UUID]:
    """Claim segments that are due for a count; no other worker takes them before the deadline."""
    return await tx.fetch_column(
        """
        UPDATE segments SET owner = %(owner)s, due_at = %(until)s
        WHERE organization_id = %(organization_id)s AND id = ANY (ARRAY(
            SELECT id FROM segments
            WHERE organization_id = %(organization_id)s AND due_at <= %(now)s
            ORDER BY due_at, id
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING id
        """,
        {"organization_id": organization_id, "owner": owner, "until": until, "now": tx.now, "limit": limit},
    )


async def complete_count(
    tx: Tx, organization_id: UUID, segment_id: UUID, *, version: int, owner: UUID, due_at: datetime
) -> None:
    """Schedule the next count, unless a newer version was saved meanwhile, whose count is due now."""
    await tx.execute(
        """
        UPDATE segments SET owner = NULL, due_at = %s
        WHERE organization_id = %s AND id = %s AND owner = %s AND version = %s
        """,
        (due_at, organization_id, segment_id, owner, version),
    )
