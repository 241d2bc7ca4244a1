"""All sales as the columns have them, and as the rows do."""

import json
from collections import Counter
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any
from uuid import UUID

from tests.columns.fed_shop import FedShop

from regulars.columns.engine.sales_encoding import LINE_PARTS, SALE_PARTS, read_flat, unpack
from regulars.columns.engine.sales_runs import Dictionaries
from regulars.columns.model import ERASED, NO_CUSTOMER, PACKED, unpack_sales

Sale = tuple[Any, ...]


def check_all_sales(shop: FedShop) -> None:
    in_columns, in_rows = Counter(sales_in_columns(shop)), Counter(sales_in_rows(shop))
    assert in_columns == in_rows, f"only in columns: {in_columns - in_rows}, only in rows: {in_rows - in_columns}"


def sales_in_columns(shop: FedShop) -> Iterator[Sale]:
    blobs: dict[tuple[int, str], dict[str, bytes]] = {}
    for run_id, kind, part, content in shop.sql(
        "SELECT r.id, r.kind, b.part, b.content FROM segment_columns AS c"
        " JOIN segment_runs AS r ON r.organization_id = c.organization_id AND r.epoch = c.epoch AND r.is_live"
        " JOIN segment_blobs AS b ON b.organization_id = r.organization_id AND b.epoch = r.epoch AND b.run_id = r.id"
        " WHERE c.organization_id = %s AND r.kind IN ('sales', 'anonymous')"
    ):
        blobs.setdefault((run_id, kind), {})[part] = content
    found = shop.sql(
        "SELECT n.number, n.profile_id FROM segment_customers AS n JOIN segment_columns AS c"
        " ON c.organization_id = n.organization_id AND c.epoch = n.epoch WHERE n.organization_id = %s"
    )
    profiles = {NO_CUSTOMER: None, **dict(found)}
    for (_, kind), parts in blobs.items():
        known = Dictionaries()
        flat = unpack(unpack_sales(parts[PACKED]), known) if PACKED in parts else read_flat(parts, known)
        assert all((number >= 0) == (kind == "sales") for number in flat["customer"].tolist())
        lines: dict[int, list[tuple[Any, ...]]] = {}
        for sale, names in LINE_PARTS.items():
            for place, *row in zip(*(flat[name].tolist() for name in (sale, *names)), strict=True):
                product = json.loads(known.products.values[row[0]]) if sale == "sale" else None
                lines.setdefault(place, []).append((json.dumps(product), *row[-2:]))
        for place, row in enumerate(zip(*(flat[name].tolist() for name in SALE_PARTS), strict=True)):
            customer, at_s, store, code, *sums = row
            about = (at_s, UUID(bytes=known.stores.values[store]), known.currencies.values[code >> 1], code & 1)
            yield (profiles.get(customer, ERASED), *about, *sums, tuple(sorted(lines.get(place, []))))


def sales_in_rows(shop: FedShop) -> Iterator[Sale]:
    for profile, is_anonymised, at_s, store, kind, currency, amount, discount, tax, items in shop.sql(
        "SELECT profile_id, anonymised_at IS NOT NULL, floor(extract(epoch FROM occurred_at))::bigint, store_id, type,"
        " currency, total_amount_cents, total_discount_cents, total_tax_cents, line_items::text"
        " FROM sales_events WHERE organization_id = %s"
    ):
        sign = -1 if kind == "RETURN" else 1
        lines = json.loads(items, parse_float=Decimal)
        units = _as_returned([_units(line) for line in lines], kind)
        totals = _as_returned([line["total_price_cents"] for line in lines], kind)
        products = [json.dumps(line.get("product"), default=float) for line in lines]
        yield (
            ERASED if is_anonymised else profile,
            *(at_s, store, currency, int(kind == "RETURN")),
            *(sign * amount, sign * discount, sign * (tax or 0), sum(units), len(lines)),
            tuple(sorted(zip(products, units, totals, strict=True))),
        )


def _units(line: dict[str, Any]) -> int:
    """In millionths; a line with a unit of measure is one."""
    quantity = Decimal(line["quantity"])
    if line.get("unit") is not None:
        return 1_000_000 if quantity > 0 else -1_000_000
    return int((quantity * 1_000_000).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def _as_returned(values: list[int], kind: str) -> list[int]:
    """What comes back counts below zero; the lines of a return may say so already."""
    return [-value for value in values] if kind == "RETURN" and sum(values) >= 0 else values
