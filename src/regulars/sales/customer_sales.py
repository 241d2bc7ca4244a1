"""Load the sales of some customers, and match their returns to purchases (`returned_lines.py`)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.kit.arrays import Ids, Timestamps
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at
from regulars.sales.returned_lines import CustomerSale, MatchedReturns, match_returns, returned_totals

# If a customer has more sales, only the newest are used. An account that a store uses for all anonymous sales has more.
SALES_MAX: Final = 10_000
# A sale's id begins with the time of recording, which is after `occurred_at`, unless the clock of the cash register is
# ahead of the server's.
_CLOCK_DIFFERENCE_MAX: Final = timedelta(days=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class _LoadedProduct(msgspec.Struct, gc=False):
    external_id: str | None = None


class _LoadedLine(msgspec.Struct, gc=False):
    total_price_cents: int
    product: _LoadedProduct | None = None


_read_lines = msgspec.json.Decoder(list[_LoadedLine]).decode


class LoadedSale(NamedTuple):
    id: UUID
    profile_id: UUID
    external_id: str
    occurred_at: datetime
    is_return: bool
    currency: str
    total_cents: int
    line_items: str


async def find_customer_sales(
    tx: Tx, organization_id: UUID, since: Mapping[UUID, datetime]
) -> dict[UUID, list[LoadedSale]]:
    """Load the sales of each customer since the time that `since` has for the customer."""
    rows = await tx.fetch(
        """
        SELECT s.*
        FROM unnest(%(ids)s::uuid[], %(first_ids)s::uuid[], %(since)s::timestamptz[]) AS it (id, first_id, since)
        CROSS JOIN LATERAL (
            SELECT id, profile_id, external_id, occurred_at, type = 'RETURN', currency, total_amount_cents,
                   line_items::text
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id = it.id AND id >= it.first_id
              AND occurred_at >= it.since
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS s
        """,
        {
            "organization_id": organization_id,
            "ids": Ids(since),
            "first_ids": Ids(first_id_at(start - _CLOCK_DIFFERENCE_MAX) for start in since.values()),
            "since": Timestamps(since.values()),
            "limit": SALES_MAX,
        },
    )
    sales: dict[UUID, list[LoadedSale]] = defaultdict(list)
    for row in rows:
        sale = LoadedSale(*row)
        sales[sale.profile_id].append(sale)
    return dict(sales)


def match_loaded(sales: Sequence[LoadedSale]) -> MatchedReturns[UUID]:
    """Match the returns of one customer to the purchases; without a return, no line items are decoded."""
    return match_returns(map(_decode_lines, sales) if any(sale.is_return for sale in sales) else ())


def _decode_lines(sale: LoadedSale) -> CustomerSale[UUID]:
    lines = _read_lines(sale.line_items)
    totals = [line.total_price_cents for line in lines]
    products = (None if line.product is None else line.product.external_id for line in lines)
    return CustomerSale(
        key=sale.id,
        at=(sale.occurred_at - _EPOCH) // _MICROSECOND,
        external_id=sale.external_id,
        is_return=sale.is_return,
        currency=sale.currency,
        total_cents=sale.total_cents,
        lines=list(zip(products, returned_totals(totals) if sale.is_return else totals, strict=True)),
    )
