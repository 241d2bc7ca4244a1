"""The sales of some customers, with what the rule about returned lines needs (`returned_lines.py`)."""

from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from regulars.kit.db import Tx
from regulars.sales.returned_lines import CustomerSale, returned_totals

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class _Product(msgspec.Struct, gc=False):
    external_id: str | None = None


class _Line(msgspec.Struct, gc=False):
    total_price_cents: int
    product: _Product | None = None


_lines = msgspec.json.Decoder(list[_Line])


def microseconds_of(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


async def read_customer_sales(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], *, since: datetime, until: datetime
) -> dict[UUID, list[CustomerSale[UUID]]]:
    """By profile, in any order: the sales from a moment to before another one. For at most some thousand customers."""
    rows = await tx.fetch(
        """
        SELECT profile_id, id, occurred_at, external_id, type = 'RETURN', currency, total_amount_cents,
               line_items::text
        FROM sales_events
        WHERE organization_id = %(organization_id)s AND profile_id = ANY (%(profile_ids)s::uuid[])
          AND occurred_at >= %(since)s AND occurred_at < %(until)s
        """,
        {"organization_id": organization_id, "profile_ids": list(profile_ids), "since": since, "until": until},
    )
    sales: dict[UUID, list[CustomerSale[UUID]]] = defaultdict(list)
    for profile_id, sale_id, occurred_at, external_id, is_return, currency, total_cents, line_items in rows:
        lines = _lines.decode(line_items)
        totals = [line.total_price_cents for line in lines]
        products = [None if line.product is None else line.product.external_id for line in lines]
        lined = tuple(zip(products, returned_totals(totals) if is_return else totals, strict=True))
        sales[profile_id].append(
            CustomerSale(sale_id, microseconds_of(occurred_at), external_id, is_return, currency, total_cents, lined)
        )
    return sales
