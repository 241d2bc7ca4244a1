"""The SQL that reads sales for the columns, their columnar copy. Each statement returns one row, because reading a row
per sale is slow: the ids of all sales, their numbers, their labels and their lines.

A sale is looked up with `id >= … ORDER BY id LIMIT 1`, for the reason in `feed/queries.py`.
"""

from collections.abc import Collection, Sequence
from struct import unpack
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.columns.model import SALES_LISTENER
from regulars.kit.arrays import Ids
from regulars.kit.columns import fill
from regulars.kit.connection import Prepared
from regulars.kit.db import Tx
from regulars.sales.facts import SalesRecorded

# Used instead of a profile id if the sale never had a customer, or if the customer was erased.
WITHOUT_PROFILE: Final = UUID(int=0)
WITH_ERASED_PROFILE: Final = UUID(int=(1 << 128) - 1)


_ROWS: Final[LiteralString] = """
    SELECT id, store_id, occurred_at, total_amount_cents, total_discount_cents, currency, type, line_items,
           COALESCE(total_tax_cents, 0) AS total_tax_cents,
           COALESCE(profile_id, CASE WHEN anonymised_at IS NULL THEN '00000000-0000-0000-0000-000000000000'::uuid
                                ELSE 'ffffffff-ffff-ffff-ffff-ffffffffffff' END) AS profile_id
    FROM sales_events
    WHERE organization_id = $1::uuid
"""
# Four aggregates cost PostgreSQL less than one for each column.
_AGGREGATED: Final[LiteralString] = """
    SELECT string_agg(uuid_send(sale.id) || uuid_send(sale.profile_id) || uuid_send(sale.store_id), ''::bytea),
           string_agg(timestamptz_send(sale.occurred_at) || int8send(sale.total_amount_cents)
                      || int8send(sale.total_discount_cents) || int8send(sale.total_tax_cents), ''::bytea),
           string_agg(sale.currency || CASE sale.type WHEN 'RETURN' THEN 'R' ELSE 'P' END, ''),
           string_agg(sale.line_items::text, ',')
    FROM {sales}
"""
_FIND: Final = Prepared(
    b"sales_for_columns",
    fill(
        _AGGREGATED,
        sales="unnest($2::uuid[]) AS it (id) JOIN LATERAL ("
        + _ROWS
        + "AND id >= it.id ORDER BY id LIMIT 1) AS sale ON sale.id = it.id",
    ),
)
_LIST: Final = Prepared(
    b"next_sales_for_columns",
    fill(_AGGREGATED, sales="(" + _ROWS + "AND id > $2::uuid ORDER BY id LIMIT $3::integer) AS sale"),
)


class SaleColumns(NamedTuple):
    """Sales as columns; all columns have the same order."""

    ids: tuple[bytes, ...]
    profiles: tuple[bytes, ...]
    stores: tuple[bytes, ...]
    # Microseconds since 2000.
    occurred_at: tuple[int, ...]
    # In cents; positive for returns too, as in the table.
    amounts: tuple[int, ...]
    discounts: tuple[int, ...]
    taxes: tuple[int, ...]
    currencies: tuple[bytes, ...]
    # One letter for each sale: P for a purchase, R for a return.
    types: bytes
    # The JSON arrays with the lines of each sale, separated by commas.
    line_items: bytes


async def find_sales(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> SaleColumns | None:
    """Find these sales; None if none exists."""
    return await _fetch(tx, _FIND, [organization_id.bytes, Ids(ids).payload])


async def list_sales_to_build(tx: Tx, organization_id: UUID, *, after: UUID, limit: int) -> SaleColumns | None:
    """The next sales after an id, in the order of their ids."""
    return await _fetch(tx, _LIST, [organization_id.bytes, after.bytes, limit.to_bytes(4, "big")])


async def _fetch(tx: Tx, statement: Prepared, parameters: Sequence[bytes]) -> SaleColumns | None:
    ids, numbers, labels, line_items = await tx.connection.fetch_row(statement, parameters)
    if not ids:
        return None
    count = len(labels) // 4
    sale_ids, profiles, stores = _split_columns(unpack("16s" * (3 * count), ids), 3)
    occurred_at, amounts, discounts, taxes = _split_columns(unpack(f">{4 * count}q", numbers), 4)
    return SaleColumns(
        ids=sale_ids,
        profiles=profiles,
        stores=stores,
        occurred_at=occurred_at,
        amounts=amounts,
        discounts=discounts,
        taxes=taxes,
        currencies=unpack("3sx" * count, labels),
        types=labels[3::4],
        line_items=line_items,
    )


def _split_columns(values: tuple[Any, ...], columns: int) -> list[tuple[Any, ...]]:
    """The columns of rows that follow each other."""
    return [values[column::columns] for column in range(columns)]


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
