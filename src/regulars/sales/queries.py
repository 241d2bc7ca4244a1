"""The statements on the sales tables that are not on the hot path.

Lists of keys are looked up one key at a time, through LATERAL: before the first ANALYZE the planner takes an
organization for a few rows, and its plan for `= ANY` or for a join then reads the whole organization.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Bigints, Blobs, Ids, Jsons, Uuids
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.kit.ids import ById
from regulars.profiles.model import ProfileRef
from regulars.sales.model import COLLISIONS_PER_SALE_MAX, Sale, StoredSale
from regulars.sales.statements import COLUMNS, SALE_COLUMNS, arrays
from regulars.stores.model import StoreRef

_TOLD: LiteralString = ", ".join(
    ["e." + name + ("::text" if array is Jsons else "") for name, array in SALE_COLUMNS.kinds.items()]
)
_COLUMNS: LiteralString = (
    "SELECT e.id, " + _TOLD + ", s.id, s.external_id, p.id, p.external_id, e.created_at, e.anonymised_at IS NOT NULL"
)
_BY_EXTERNAL_ID = """
FROM unnest(%s::text[]) AS wanted (external_id)
CROSS JOIN LATERAL (
    SELECT * FROM sales_events WHERE organization_id = %s AND external_id = wanted.external_id LIMIT 1
) AS e
"""
_FROM_PAGE = " FROM (SELECT * FROM sales_events AS e WHERE "
_BY_ID = """
FROM unnest(%s::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT * FROM sales_events WHERE organization_id = %s AND id = wanted.id LIMIT 1) AS e
"""
# The organization is compared as a value and never with a neighbour's column: a cluster finds the node by it.
_NAMES = """
JOIN LATERAL (
    SELECT id, external_id FROM stores WHERE organization_id = %s AND id = e.store_id LIMIT 1
) AS s ON true
LEFT JOIN LATERAL (
    SELECT id, external_id FROM profiles WHERE organization_id = %s AND id = e.profile_id LIMIT 1
) AS p ON true
"""


def _stored(row: Sequence[Any]) -> StoredSale:
    store = StoreRef(row[13], row[14])
    profile = None if row[15] is None else ProfileRef(row[15], row[16])
    told = Sale(
        external_id=row[1],
        type=row[2],
        occurred_at=row[3],
        store=ById(store.id),
        profile=None if profile is None else ById(profile.id),
        currency=row[4],
        total_amount_cents=row[5],
        total_discount_cents=row[6],
        total_tax_cents=row[7],
        source=row[8],
        payments=_bytes(row[9]),
        loyalty=_bytes(row[10]),
        metadata=_bytes(row[11]),
        line_items=row[12].encode(),
    )
    return StoredSale(row[0], told, store, profile, row[17], is_anonymised=row[18])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


async def find_sales_by_external_id(
    tx: Tx, organization_id: UUID, external_ids: Collection[str]
) -> dict[str, StoredSale]:
    rows = await tx.fetch(_COLUMNS + _BY_EXTERNAL_ID + _NAMES, (list(external_ids), *[organization_id] * 3))
    return {row[1]: _stored(row) for row in rows}


async def find_sales_by_id(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, StoredSale]:
    rows = await tx.fetch(_COLUMNS + _BY_ID + _NAMES, (list(ids), *[organization_id] * 3))
    return {row[0]: _stored(row) for row in rows}


class Condition(NamedTuple):
    """A condition on the sale `e`, and the values of its placeholders."""

    text: LiteralString
    values: tuple[Any, ...]


async def list_sales(
    tx: Tx, organization_id: UUID, *, conditions: Sequence[Condition], by_time: bool, limit: int
) -> list[StoredSale]:
    """A page in creation order, or by business date, of the sales that fit all conditions."""
    order: LiteralString = " ORDER BY e.occurred_at, e.id" if by_time else " ORDER BY e.id"
    fitting: LiteralString = " AND ".join(["e.organization_id = %s", *(condition.text for condition in conditions)])
    page: LiteralString = _FROM_PAGE + fitting + order + " LIMIT %s) AS e"
    values = [value for condition in conditions for value in condition.values]
    rows = await tx.fetch(
        _COLUMNS + page + _NAMES + order, (organization_id, *values, limit, organization_id, organization_id)
    )
    return [_stored(row) for row in rows]


async def insert_sales_if_new(tx: Tx, organization_id: UUID, sales: Sequence[StoredSale]) -> set[UUID]:
    """Insert in external_id order; give the ids that went in. The others lost to an earlier sale."""
    ordered = sorted(sales, key=lambda sale: sale.told.external_id)
    rows = await tx.fetch(
        "INSERT INTO sales_events (organization_id, created_at, profile_id, " + COLUMNS + ")"  # noqa: S608  # the names are ours
        " SELECT %s, %s, i.* FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) AS i"
        " ON CONFLICT (organization_id, external_id) DO NOTHING RETURNING id",
        (
            organization_id,
            tx.now,
            Uuids([None if sale.profile is None else sale.profile.id.bytes for sale in ordered]),
            *arrays(
                [sale.told for sale in ordered],
                ids=[sale.id.bytes for sale in ordered],
                stores=[sale.store.id.bytes for sale in ordered],
            ),
        ),
    )
    return {row[0] for row in rows}


_COLLISIONS: Final = Columns(sales_event_id=Ids, content_hash=Blobs, attempt=Jsons, times_seen=Bigints)
_INSERT_COLLISIONS: Final = _COLLISIONS.write(
    "INSERT INTO ticket_collisions AS c (organization_id, first_seen_at, last_seen_at, {columns})"
    " SELECT %(organization)s, %(now)s, %(now)s, it.* FROM {rows}"
    " WHERE EXISTS (SELECT FROM ticket_collisions k WHERE k.organization_id = %(organization)s"
    "   AND k.sales_event_id = it.sales_event_id AND k.content_hash = it.content_hash)"
    " OR (SELECT count(*) FROM ticket_collisions k WHERE k.organization_id = %(organization)s"
    "   AND k.sales_event_id = it.sales_event_id) < %(most)s"
    " ORDER BY it.sales_event_id, it.content_hash"
    " ON CONFLICT (organization_id, sales_event_id, content_hash)"
    " DO UPDATE SET times_seen = c.times_seen + excluded.times_seen, last_seen_at = excluded.last_seen_at"
)


async def insert_collisions(
    tx: Tx, organization_id: UUID, collisions: Sequence[tuple[UUID, bytes, bytes, int]]
) -> None:
    """Note attempts of (sale, content hash, content, times), one a sale; beyond ten a sale only the total counts."""
    values = {"organization": organization_id, "now": tx.now, "most": COLLISIONS_PER_SALE_MAX}
    await tx.execute(_INSERT_COLLISIONS, {**values, **_COLLISIONS.of_tuples(collisions)})


async def count_collisions(tx: Tx, organization_id: UUID, times: Sequence[tuple[UUID, int]]) -> None:
    """Add to the totals of (sale, times), each sale once, and hold its total until the end: that orders the writers."""
    await tx.execute(
        "INSERT INTO ticket_collision_totals AS t (organization_id, sales_event_id, times_seen, last_seen_at)"
        " SELECT %s, i.sale, i.times, %s FROM unnest(%s::uuid[], %s::bigint[]) AS i (sale, times) ORDER BY i.sale"
        " ON CONFLICT (organization_id, sales_event_id)"
        " DO UPDATE SET times_seen = t.times_seen + excluded.times_seen, last_seen_at = excluded.last_seen_at",
        (organization_id, tx.now, [sale for sale, _ in times], [count for _, count in times]),
    )


async def reopen_collisions(tx: Tx, organization_id: UUID, sale_ids: Collection[UUID]) -> None:
    """Those that a person had looked at wait again if this transaction brought a content that is new."""
    await tx.execute(
        "UPDATE ticket_collision_totals AS t SET reviewed_at = NULL, review = NULL"
        " WHERE t.organization_id = %(organization)s AND t.sales_event_id = ANY(%(sales)s)"
        " AND t.reviewed_at IS NOT NULL AND EXISTS (SELECT FROM ticket_collisions k"
        "   WHERE k.organization_id = %(organization)s"
        "   AND k.sales_event_id = t.sales_event_id AND k.first_seen_at = %(now)s)",
        {"organization": organization_id, "sales": sorted(sale_ids), "now": tx.now},
    )


async def forget_notes(tx: Tx, organization_id: UUID, sale_ids: Collection[UUID]) -> None:
    """A note that a person wrote about a collision may name the customer."""
    await tx.execute(
        "UPDATE ticket_collision_totals SET note = NULL"
        " WHERE organization_id = %s AND sales_event_id = ANY(%s) AND note IS NOT NULL",
        (organization_id, sorted(sale_ids)),
    )


async def unlink_profiles(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[UUID]:
    """Take what may tell of a person out of the sales of these profiles, and mark them; give their ids."""
    rows = await tx.fetch(
        "UPDATE sales_events"
        " SET profile_id = NULL, payments = NULL, loyalty = NULL, metadata = NULL, anonymised_at = %s"
        " WHERE organization_id = %s AND profile_id = ANY(%s) RETURNING id",
        (tx.now, organization_id, sorted(profile_ids)),
    )
    return [row[0] for row in rows]


async def delete_collisions(tx: Tx, organization_id: UUID, sale_ids: Collection[UUID]) -> None:
    await tx.execute(
        "DELETE FROM ticket_collisions WHERE organization_id = %s AND sales_event_id = ANY(%s)",
        (organization_id, sorted(sale_ids)),
    )


async def delete_collisions_that_name(
    tx: Tx, organization_id: UUID, references: Collection[str], *, quoted: Collection[str]
) -> list[UUID]:
    """Attempts of these customers, or with one of their references as a value of a free object; gives the sales."""
    rows = await tx.fetch(
        """
        DELETE FROM ticket_collisions
        WHERE organization_id = %(organization_id)s
          AND (attempt ->> 'profile_id' = ANY (%(references)s)
               OR EXISTS (
                   SELECT 1 FROM unnest(%(quoted)s::text[]) AS it (reference)
                   WHERE position(it.reference IN concat(attempt -> 'loyalty', attempt -> 'payments',
                                                         attempt -> 'metadata')) > 0))
        RETURNING sales_event_id
        """,
        {"organization_id": organization_id, "references": sorted(references), "quoted": sorted(quoted)},
    )
    return [row[0] for row in rows]


async def forget_notes_that_name(tx: Tx, organization_id: UUID, names: Collection[str]) -> None:
    await tx.execute(
        """
        UPDATE ticket_collision_totals SET note = NULL
        WHERE organization_id = %(organization_id)s AND note IS NOT NULL
          AND EXISTS (SELECT 1 FROM unnest(%(names)s::text[]) AS it (name) WHERE position(it.name IN note) > 0)
        """,
        {"organization_id": organization_id, "names": sorted(names)},
    )
