"""Find, list and insert sales: the SQL statements that are not on the hot path (`statements.py`).

Lists of keys are looked up one key at a time, through LATERAL: before the first ANALYZE, PostgreSQL's planner expects
few rows of an organization, and its plan for `= ANY` or for a join would read all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString
from uuid import UUID

from regulars.kit.arrays import Jsons, Uuids
from regulars.kit.clock import parse_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import SALES_EVENT, ById
from regulars.kit.keyset import Filters, Keyset, PageRequest
from regulars.kit.referenced_table import ReferenceLookup
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
_EACH: LiteralString = """
FROM unnest(%(keys)s::{type}[]) AS requested (key)
CROSS JOIN LATERAL (
    SELECT * FROM sales_events WHERE organization_id = %(organization_id)s AND {key} = requested.key LIMIT 1
) AS e
"""
_PAGE: LiteralString = """
FROM (
    SELECT * FROM sales_events AS e
    WHERE e.organization_id = %(organization_id)s {and_filters} {and_after_position}
    ORDER BY {ordered}
    LIMIT %(limit)s
) AS e
"""
# The organization is compared with a parameter and never with a column of another table, because a cluster (Citus)
# finds the node by that value.
_JOINS: LiteralString = """
JOIN LATERAL (
    SELECT id, external_id FROM stores WHERE organization_id = %(organization_id)s AND id = e.store_id LIMIT 1
) AS s ON true
LEFT JOIN LATERAL (
    SELECT id, external_id FROM profiles WHERE organization_id = %(organization_id)s AND id = e.profile_id LIMIT 1
) AS p ON true
"""


def _make_stored_sale(*row: Any) -> StoredSale:
    """Make a sale from a row with the columns of `_SELECT`."""
    store = StoreRef(row[13], row[14])
    profile = None if row[15] is None else ProfileRef(row[15], row[16])
    # The columns 1 to 12 are the fields of `Sale` in their order, without the references; the last four are JSON.
    references = ById(store.id), None if profile is None else ById(profile.id)
    documents = [None if text is None else text.encode() for text in row[9:13]]
    fields: list[Any] = [*row[1:4], *references, *row[4:9], *documents]
    return StoredSale(row[0], Sale(*fields), store, profile, row[17], is_anonymised=row[18])


SALES: Final = ReferenceLookup(_SELECT + _EACH + _JOINS, _make_stored_sale)
_BY_ID: Final = Keyset({"e.id": SALES_EVENT.decode})
_BY_TIME: Final = Keyset({"e.occurred_at": parse_timestamp, "e.id": SALES_EVENT.decode})
# The filters that an index serves in the order of the list; `blocks` searches for all others.
_FILTERS: Final[Filters] = {
    "profile_id": "e.profile_id = %(profile_id)s",
    "occurred_from": "e.occurred_at >= %(occurred_from)s",
    "occurred_to": "e.occurred_at < %(occurred_to)s",
    "after_id": "e.id > %(after_id)s",
    "before_id": "e.id < %(before_id)s",
}


async def list_sales(
    tx: Tx, organization_id: UUID, filters: Mapping[str, Any], page: PageRequest, *, by_time: bool
) -> list[StoredSale]:
    """Return sales by filters with an index, in the order of creation or, if `by_time`, of `occurred_at`."""
    if unknown := filters.keys() - _FILTERS.keys():
        raise AssertionError(f"a list without the filter {unknown} would show other sales")
    return await (_BY_TIME if by_time else _BY_ID).fetch(
        tx,
        _SELECT + _PAGE + _JOINS + "ORDER BY {ordered}",
        page,
        {"organization_id": organization_id, **dict.fromkeys(_FILTERS), **filters},
        make=_make_stored_sale,
        filters=_FILTERS,
    )


async def insert_sales_if_new(tx: Tx, organization_id: UUID, sales: Sequence[StoredSale]) -> set[UUID]:
    """Insert the sales in the order of external_id; return the ids of those that were not stored already."""
    ordered = sorted(sales, key=lambda sale: sale.ticket.external_id)
    inserted = await tx.fetch_column(
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
    return set(inserted)
