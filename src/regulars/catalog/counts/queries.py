"""The SQL of the counts of attribute and product values, and of their results (tallies) for each key.

A count of all keys has no key; a preview, the count of one key by a proposed type, has one.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

import msgspec

from regulars.catalog.counts.model import CountJob, Tally
from regulars.catalog.model import Catalog
from regulars.kit.arrays import Bigints, JsonTexts, Texts
from regulars.kit.columns import Columns, fill, names_of
from regulars.kit.db import Tx

_SELECT: Final = fill(
    "SELECT {columns} FROM catalog_counts WHERE organization_id = %s AND ", columns=names_of(CountJob)
)


async def _fetch_counts(tx: Tx, condition: LiteralString, parameters: tuple[Any, ...]) -> list[CountJob]:
    rows = await tx.fetch(_SELECT + condition, parameters)
    return [msgspec.convert(dict(zip(CountJob.__struct_fields__, row, strict=True)), CountJob) for row in rows]


async def insert_count(tx: Tx, organization_id: UUID, count: CountJob) -> None:
    await tx.execute(
        """
        INSERT INTO catalog_counts
            (organization_id, id, catalog, key, type, allowed_values, walked_to, rows_total, created_at, due_at)
        VALUES (%(organization_id)s, %(id)s, %(catalog)s, %(key)s, %(type)s, %(allowed_values)s::text[],
            %(walked_to)s, %(rows_total)s, %(created_at)s, %(due_at)s)
        """,
        {
            **msgspec.structs.asdict(count),
            "organization_id": organization_id,
            "catalog": count.catalog.value,
            "type": None if count.type is None else count.type.value,
            "allowed_values": list(count.allowed_values),
        },
    )


async def lock_counts(tx: Tx, organization_id: UUID) -> list[CountJob]:
    """Lock all counts of the organization, so that none adds a batch before the transaction ends."""
    return await _fetch_counts(tx, "true ORDER BY id FOR UPDATE", (organization_id,))


async def take_due_counts(tx: Tx, organization_id: UUID, *, limit: int) -> list[CountJob]:
    """Return the due counts that no other transaction has locked; they stay locked until this one ends."""
    condition = "due_at <= %s ORDER BY due_at, id LIMIT %s FOR UPDATE SKIP LOCKED"
    return await _fetch_counts(tx, condition, (organization_id, tx.now, limit))


async def find_count(tx: Tx, organization_id: UUID, count_id: UUID) -> CountJob | None:
    return next(iter(await _fetch_counts(tx, "id = %s", (organization_id, count_id))), None)


async def list_full_counts(tx: Tx, organization_id: UUID, catalog: Catalog) -> list[CountJob]:
    """Return the counts of all keys, newest first: the one that runs or has failed, and the last finished one."""
    condition = "catalog = %s AND key IS NULL ORDER BY id DESC"
    return await _fetch_counts(tx, condition, (organization_id, catalog.value))


async def update_progress(tx: Tx, organization_id: UUID, count: CountJob) -> None:
    """Store how far the count is; an attempt that succeeded resets the number of attempts."""
    await tx.execute(
        """
        UPDATE catalog_counts
        SET walked_to = %(walked_to)s, rows_read = %(rows_read)s, rows_total = %(rows_total)s,
            finished_at = %(finished_at)s, due_at = %(due_at)s, attempts = 0
        WHERE organization_id = %(organization_id)s AND id = %(id)s
        """,
        {"organization_id": organization_id, **msgspec.structs.asdict(count)},
    )


async def bring_forward(tx: Tx, organization_id: UUID, catalog: Catalog, *, due_at: datetime) -> None:
    """Make a finished count of all keys due at this time, if it is due later."""
    await tx.execute(
        """
        UPDATE catalog_counts SET due_at = %(due_at)s
        WHERE organization_id = %(organization_id)s AND catalog = %(catalog)s AND key IS NULL
          AND finished_at IS NOT NULL AND due_at > %(due_at)s
        """,
        {"organization_id": organization_id, "catalog": catalog.value, "due_at": due_at},
    )


async def delete_counts(tx: Tx, organization_id: UUID, count_ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM catalog_counts WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(count_ids)),
    )


async def delete_tallies(tx: Tx, organization_id: UUID, count_ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM catalog_tallies WHERE organization_id = %s AND count_id = ANY (%s::uuid[])",
        (organization_id, list(count_ids)),
    )


async def drop_rare_values(tx: Tx, organization_id: UUID, count_id: UUID, *, times_min: int) -> None:
    """Drop the values of a count that occur less often."""
    await tx.execute(
        """
        UPDATE catalog_tallies
        SET common = coalesce((
            SELECT jsonb_agg(it.pair ORDER BY it.place)
            FROM jsonb_array_elements(common) WITH ORDINALITY AS it (pair, place)
            WHERE (it.pair ->> 1)::bigint >= %(times_min)s
        ), '[]')
        WHERE organization_id = %(organization_id)s AND count_id = %(count_id)s AND common <> '[]'
        """,
        {"organization_id": organization_id, "count_id": count_id, "times_min": times_min},
    )


async def erase_samples(tx: Tx, organization_id: UUID, count_ids: Sequence[UUID]) -> None:
    """Erase all values that these counts have stored; the numbers stay."""
    await tx.execute(
        """
        UPDATE catalog_tallies SET samples = '[]', common = '[]'
        WHERE organization_id = %s AND count_id = ANY (%s::uuid[]) AND (samples <> '[]' OR common <> '[]')
        """,
        (organization_id, list(count_ids)),
    )


async def find_keys_of_buyers(
    tx: Tx, organization_id: UUID, count_ids: Sequence[UUID], buyers: Sequence[str]
) -> dict[UUID, list[str]]:
    """Return the keys with a value that one of these customers bought, by count."""
    rows = await tx.fetch(
        """
        SELECT count_id, array_agg(key) FROM catalog_tallies
        WHERE organization_id = %(organization_id)s AND count_id = ANY (%(count_ids)s::uuid[])
          AND EXISTS (
              SELECT FROM unnest(%(buyers)s::text[]) AS it (buyer)
              WHERE position(it.buyer IN catalog_tallies.buyers::text) > 0
          )
        GROUP BY count_id
        """,
        {"organization_id": organization_id, "count_ids": list(count_ids), "buyers": list(buyers)},
    )
    return dict(rows)


async def list_previews(tx: Tx, organization_id: UUID, catalog: Catalog, key: str) -> list[UUID]:
    return await tx.fetch_column(
        "SELECT id FROM catalog_counts WHERE organization_id = %s AND catalog = %s AND key = %s",
        (organization_id, catalog.value, key),
    )


async def find_tallies(
    tx: Tx, organization_id: UUID, count_id: UUID, *, keys: Sequence[str] | None = None
) -> dict[str, Tally]:
    """Return the tallies of a count, of these keys or of all."""
    rows = await tx.fetch(
        """
        SELECT key, readable, unreadable, leading_zeros, samples::text, common::text, buyers::text
        FROM catalog_tallies
        WHERE organization_id = %(organization_id)s AND count_id = %(count_id)s
          AND (%(keys)s::text[] IS NULL OR key = ANY (%(keys)s::text[]))
        """,
        {"organization_id": organization_id, "count_id": count_id, "keys": None if keys is None else list(keys)},
    )
    return {
        key: Tally(
            readable,
            unreadable,
            leading_zeros,
            _values(samples),
            _values(common),
            dict(msgspec.json.decode(buyers, type=list[tuple[str, list[str]]])),
        )
        for key, readable, unreadable, leading_zeros, samples, common, buyers in rows
    }


def _values(text: str) -> dict[str, int]:
    """Decode the values, which are stored as pairs because jsonb objects lose their order."""
    return dict(msgspec.json.decode(text, type=list[tuple[str, int]]))


def _pairs(values: Mapping[str, int | list[str]]) -> str:
    return msgspec.json.encode(list(values.items())).decode()


_TALLIES: Final = Columns(
    readable=Bigints,
    unreadable=Bigints,
    leading_zeros=Bigints,
    samples=(JsonTexts, _pairs),
    common=(JsonTexts, _pairs),
    buyers=(JsonTexts, _pairs),
)
_KEYS: Final = Columns(key=Texts)
_UPSERT_TALLIES: Final[LiteralString] = (_KEYS | _TALLIES).write(
    """
    INSERT INTO catalog_tallies (organization_id, count_id, {columns})
    SELECT %(organization_id)s, %(count_id)s, it.* FROM {rows}
    ON CONFLICT (organization_id, count_id, key) DO UPDATE SET {counted}
    """,
    counted=_TALLIES.assign("excluded"),
)


async def upsert_tallies(tx: Tx, organization_id: UUID, count_id: UUID, tallies: Mapping[str, Tally]) -> None:
    values = {"key": Texts(tallies), **_TALLIES.of(tallies.values())}
    await tx.execute(_UPSERT_TALLIES, {"organization_id": organization_id, "count_id": count_id, **values})
