"""The SQL that reads sales for the columns, their columnar copy. Each statement returns one row; each of its fields has
the values of all sales, so that the driver need not create an object per sale, which is slow.

A sale is looked up with `id >= … ORDER BY id LIMIT 1`, for the reason in `feed/queries.py`.
"""

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.columns import fill
from regulars.kit.db import Tx
from regulars.sales.facts import SalesRecorded
from regulars.segments.columns.model import SALES_LISTENER

# Used instead of a profile id if the sale never had a customer, or if the customer was erased.
WITHOUT_PROFILE: Final = UUID(int=0)
WITH_ERASED_PROFILE: Final = UUID(int=(1 << 128) - 1)
_RESERVED_IDS: Final = {"without_profile": WITHOUT_PROFILE, "with_erased_profile": WITH_ERASED_PROFILE}


_ROWS: Final = """
    SELECT id, store_id, occurred_at, total_amount_cents, total_discount_cents, currency, type, line_items,
           COALESCE(total_tax_cents, 0) AS total_tax_cents,
           COALESCE(profile_id, CASE WHEN anonymised_at IS NULL THEN %(without_profile)s::uuid
                                ELSE %(with_erased_profile)s::uuid END) AS profile_id
    FROM sales_events
    WHERE organization_id = %(organization_id)s
"""
# The fields of `SaleColumns`.
_AGGREGATED: Final = """
    SELECT string_agg(uuid_send(sale.id), ''::bytea), string_agg(uuid_send(sale.profile_id), ''::bytea),
           string_agg(uuid_send(sale.store_id), ''::bytea), string_agg(timestamptz_send(sale.occurred_at), ''::bytea),
           string_agg(int8send(sale.total_amount_cents), ''::bytea),
           string_agg(int8send(sale.total_discount_cents), ''::bytea),
           string_agg(int8send(sale.total_tax_cents), ''::bytea), string_agg(sale.currency, ''),
           string_agg(CASE sale.type WHEN 'RETURN' THEN 'R' ELSE 'P' END, ''), string_agg(sale.line_items::text, ',')
    FROM {sales}
    HAVING count(*) > 0
"""
_FIND: Final = fill(
    _AGGREGATED,
    sales="unnest(%(ids)s::uuid[]) AS it (id) JOIN LATERAL ("
    + _ROWS
    + "AND id >= it.id ORDER BY id LIMIT 1) AS sale ON sale.id = it.id",
)
_LIST: Final = fill(_AGGREGATED, sales="(" + _ROWS + "AND id > %(after)s ORDER BY id LIMIT %(limit)s) AS sale")


class SaleColumns(NamedTuple):
    """Sales as columns; all columns have the same order."""

    # 16 bytes for each id.
    ids: bytes
    profiles: bytes
    stores: bytes
    # Microseconds since 2000, in 8 bytes each.
    occurred_at: bytes
    # In cents, in 8 bytes each; positive for returns too, as in the table.
    amounts: bytes
    discounts: bytes
    taxes: bytes
    # Three letters for each sale.
    currencies: str
    # One letter for each sale: P for a purchase, R for a return.
    types: str
    # The JSON arrays with the lines of each sale, separated by commas.
    line_items: str


async def find_sales(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> SaleColumns | None:
    """Find these sales; None if none exists."""
    return await tx.fetch_first(
        SaleColumns, _FIND, {"organization_id": organization_id, "ids": list(ids), **_RESERVED_IDS}
    )


async def list_sales_to_build(tx: Tx, organization_id: UUID, *, after: UUID, limit: int) -> SaleColumns | None:
    """The next sales after an id, in the order of their ids."""
    return await tx.fetch_first(
        SaleColumns, _LIST, {"organization_id": organization_id, "after": after, "limit": limit, **_RESERVED_IDS}
    )


async def find_written_sales(tx: Tx, organization_id: UUID, epoch: int, *, first: UUID, last: UUID) -> set[UUID]:
    """Find the sales in a range of ids that listeners wrote to the columns since the build began."""
    sale_ids = await tx.fetch_column(
        """
        SELECT sale_id FROM segment_fed
        WHERE organization_id = %s AND epoch = %s AND sale_id BETWEEN %s AND %s
        """,
        (organization_id, epoch, first, last),
    )
    return set(sale_ids)


async def find_waiting_sales(tx: Tx, organization_id: UUID, *, first: UUID, last: UUID) -> set[UUID]:
    """Find the sales in a range of ids that are named by a fact (a recorded event) which no listener handled yet.

    The caller compares the ids with those of sales. A join would be slow: the planner estimates millions of sales per
    fact, and would search all of them once per sale.
    """
    sale_ids = await tx.fetch_column(
        """
        SELECT named.sale::uuid
        FROM outbox
        CROSS JOIN LATERAL json_array_elements(outbox.payload) AS fact (body)
        CROSS JOIN LATERAL json_array_elements_text(fact.body -> 'sales') AS named (sale)
        WHERE outbox.organization_id = %(organization_id)s AND outbox.topic = %(topic)s
          AND named.sale::uuid BETWEEN %(first)s AND %(last)s
        UNION ALL
        SELECT named.sale::uuid
        FROM outbox_retries
        CROSS JOIN LATERAL json_array_elements(outbox_retries.payload) AS fact (body)
        CROSS JOIN LATERAL json_array_elements_text(fact.body -> 'sales') AS named (sale)
        WHERE outbox_retries.organization_id = %(organization_id)s AND outbox_retries.topic = %(topic)s
          AND outbox_retries.listener = %(listener)s AND named.sale::uuid BETWEEN %(first)s AND %(last)s
        """,
        {
            "organization_id": organization_id,
            "topic": SalesRecorded.topic,
            "listener": SALES_LISTENER,
            "first": first,
            "last": last,
        },
    )
    return set(sale_ids)
