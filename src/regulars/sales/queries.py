"""Find, list and insert sales: the SQL statements that are not on the hot path (`statements.py`).

Lists of keys are looked up one key at a time, through LATERAL: before the first ANALYZE, PostgreSQL's planner expects
few rows of an organization, and its plan for `= ANY` or for a join would read all of them.
"""

from collections.abc import Collection, Sequence
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from regulars.kit.arrays import Jsons, Uuids
from regulars.kit.db import Tx
from regulars.kit.ids import ById
from regulars.profiles.model import ProfileRef
from regulars.sales.model import Sale, StoredSale
from regulars.sales.statements import COLUMNS, SALE_COLUMNS, make_arrays
from regulars.stores.model import StoreRef

_SENT_COLUMNS: LiteralString = ", ".join(
    [
        "e." + name + ("::text" if array is Jsons else "")
        for name, array in SALE_COLUMNS.kinds.items()
        if name not in {"unit_millionths", "line_count"}
    ]
)
_SELECT: LiteralString = (
    "SELECT e.id, "
    + _SENT_COLUMNS
    + ", s.id, s.external_id, p.id, p.external_id, e.created_at, e.anonymised_at IS NOT NULL"
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
# The organization is compared with a parameter and never with a column of another table, because a cluster (Citus)
# finds the node by that value.
_JOINS = """
JOIN LATERAL (
    SELECT id, external_id FROM stores WHERE organization_id = %s AND id = e.store_id LIMIT 1
) AS s ON true
LEFT JOIN LATERAL (
    SELECT id, external_id FROM profiles WHERE organization_id = %s AND id = e.profile_id LIMIT 1
) AS p ON true
"""


def _make_stored_sale(row: Sequence[Any]) -> StoredSale:
    """Make a sale from a row with the columns of `_SELECT`."""
    store = StoreRef(row[13], row[14])
    profile = None if row[15] is None else ProfileRef(row[15], row[16])
    # The columns 1 to 12 are the fields of `Sale` in their order, without the references; the last four are JSON.
    references = ById(store.id), None if profile is None else ById(profile.id)
    documents = [None if text is None else text.encode() for text in row[9:13]]
    fields: list[Any] = [*row[1:4], *references, *row[4:9], *documents]
    return StoredSale(row[0], Sale(*fields), store, profile, row[17], is_anonymised=row[18])


async def find_sales_by_external_id(
    tx: Tx, organization_id: UUID, external_ids: Collection[str]
) -> dict[str, StoredSale]:
    rows = await tx.fetch(_SELECT + _BY_EXTERNAL_ID + _JOINS, (list(external_ids), *[organization_id] * 3))
    return {row[1]: _make_stored_sale(row) for row in rows}


async def find_sales_by_id(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, StoredSale]:
    rows = await tx.fetch(_SELECT + _BY_ID + _JOINS, (list(ids), *[organization_id] * 3))
    return {row[0]: _make_stored_sale(row) for row in rows}


class Condition(NamedTuple):
    """A condition on the sale `e`, and the values of its placeholders."""

    text: LiteralString
    values: tuple[Any, ...]


async def list_sales(
    tx: Tx, organization_id: UUID, *, conditions: Sequence[Condition], by_time: bool, limit: int
) -> list[StoredSale]:
    """Return sales that match all conditions, in the order of creation or, if `by_time`, of `occurred_at`."""
    order: LiteralString = " ORDER BY e.occurred_at, e.id" if by_time else " ORDER BY e.id"
    where: LiteralString = " AND ".join(["e.organization_id = %s", *(condition.text for condition in conditions)])
    page: LiteralString = _FROM_PAGE + where + order + " LIMIT %s) AS e"
    values = [value for condition in conditions for value in condition.values]
    rows = await tx.fetch(
        _SELECT + page + _JOINS + order, (organization_id, *values, limit, organization_id, organization_id)
    )
    return [_make_stored_sale(row) for row in rows]


async def insert_sales_if_new(tx: Tx, organization_id: UUID, sales: Sequence[StoredSale]) -> set[UUID]:
    """Insert the sales in the order of external_id; return the ids of those that were not stored already."""
    ordered = sorted(sales, key=lambda sale: sale.ticket.external_id)
    rows = await tx.fetch(
        "INSERT INTO sales_events (organization_id, created_at, profile_id, " + COLUMNS + ")"  # noqa: S608  # the names are ours
        " SELECT %s, %s, i.* FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) AS i"
        " ON CONFLICT (organization_id, external_id) DO NOTHING RETURNING id",
        (
            organization_id,
            tx.now,
            Uuids([None if sale.profile is None else sale.profile.id.bytes for sale in ordered]),
            *make_arrays(
                [sale.ticket for sale in ordered],
                ids=[sale.id.bytes for sale in ordered],
                stores=[sale.store.id.bytes for sale in ordered],
            ),
        ),
    )
    return {row[0] for row in rows}
