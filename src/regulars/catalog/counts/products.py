"""The products on tickets: their names, prices and units of the last days, added up by the count of ticket lines."""

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.catalog.model import fold_text
from regulars.kit.db import Tx
from regulars.kit.name_search import NamePatterns

# So many products are stored: those that were sold last.
PRODUCTS_MAX: Final = 100_000
# How many products a search reads: those that were sold last.
SEARCHED_MAX: Final = 20_000
# The days of which the sold units are shown.
SOLD_DAYS: Final = 30
# One more day is stored, since a page may show another day than the one on which the units were added.
STORED_DAYS: Final = SOLD_DAYS + 1


class ProductSales(NamedTuple):
    """What a batch of tickets has of a product in one currency, on one of the last days or before all of them."""

    code: str
    name: str | None
    currency: str
    # None: before the days of which units are stored.
    day: date | None
    last_day: date
    units: float
    # Of one unit, in cents; None if the tickets are returns.
    lowest_cents: int | None
    highest_cents: int | None


class Product(msgspec.Struct):
    """A product that was on a ticket."""

    code: str
    name: str = ""
    # The lowest and the highest price of one unit in cents, by currency.
    prices: dict[str, tuple[int, int]] = {}
    # Units sold, by day.
    days: dict[date, float] = {}
    last_day: date = date.min

    @property
    def searched(self) -> str:
        return fold_text(f"{self.code} {self.name}")

    @property
    def sold(self) -> float:
        """The units of all stored days."""
        return sum(self.days.values())

    def sold_until(self, today: date) -> float:
        """The units of the last 30 days, of which `today` is the last."""
        return sum(units for day, units in self.days.items() if day >= _first_shown_day(today))

    def add(self, sales: ProductSales, *, since: date) -> None:
        if sales.name and sales.last_day >= self.last_day:
            self.name = sales.name
        self.last_day = max(self.last_day, sales.last_day)
        if sales.lowest_cents is not None and sales.highest_cents is not None:
            lowest, highest = self.prices.get(sales.currency, (sales.lowest_cents, sales.highest_cents))
            self.prices[sales.currency] = (min(lowest, sales.lowest_cents), max(highest, sales.highest_cents))
        if sales.day is not None and sales.units:
            self.days[sales.day] = self.days.get(sales.day, 0) + sales.units
        self.days = {day: units for day, units in self.days.items() if day >= since}


def _first_shown_day(today: date) -> date:
    return today - timedelta(days=SOLD_DAYS - 1)


def first_stored_day(today: date) -> date:
    """The first of the days of which units are stored."""
    return today - timedelta(days=STORED_DAYS - 1)


async def add_sales(
    tx: Tx, organization_id: UUID, count_id: UUID, sales: Sequence[ProductSales], *, today: date
) -> None:
    """Add what a batch of tickets has to the products of a count."""
    if not sales:
        return
    products = {
        product.code: product
        for product in await _find_each(tx, organization_id, count_id, {line.code for line in sales})
    }
    new = {line.code for line in sales} - products.keys()
    products |= {code: Product(code) for code in sorted(new)[:PRODUCTS_MAX]}
    since = first_stored_day(today)
    for line in sales:
        if line.code in products:
            products[line.code].add(line, since=since)
    await _upsert(tx, organization_id, count_id, list(products.values()))
    if new:
        await _delete_oldest(tx, organization_id, count_id)


async def find_products(tx: Tx, organization_id: UUID, count_id: UUID, codes: Collection[str]) -> dict[str, Product]:
    """Return the products with these codes; a code that no counted ticket has is not in the result."""
    # PostgreSQL accepts no parameter with a zero byte, and no code has one.
    valid = [code for code in codes if "\0" not in code]
    return {product.code: product for product in await _find_each(tx, organization_id, count_id, valid)}


async def has_all(tx: Tx, organization_id: UUID, count_id: UUID) -> bool:
    """Whether there are fewer products than may be stored, so that none was deleted."""
    last = await tx.fetch(
        "SELECT FROM catalog_products WHERE organization_id = %s AND count_id = %s OFFSET %s LIMIT 1",
        (organization_id, count_id, PRODUCTS_MAX - 1),
    )
    return not last


async def search_products(tx: Tx, organization_id: UUID, count_id: UUID, text: str, *, limit: int) -> list[Product]:
    """Return products whose code or name contains the text, those that sold most first. Only the products that were
    sold last are searched.

    The stored sum of a product is of the days before its last sale, so a product that ended comes after those that are
    sold.
    """
    today = tx.now.date()
    rows = await tx.fetch(
        """
        SELECT code, name, prices::text, days::text, last_day
        FROM (
            SELECT code, name, searched, prices, days, sold, last_day
            FROM catalog_products
            WHERE organization_id = %(organization_id)s AND count_id = %(count_id)s
            ORDER BY last_day DESC, code
            LIMIT %(searched_max)s
        ) AS latest
        WHERE position(%(text)s IN searched) > 0
        ORDER BY last_day >= %(since)s DESC, sold DESC, code
        LIMIT %(limit)s
        """,
        {
            "organization_id": organization_id,
            "count_id": count_id,
            "text": fold_text(text),
            "searched_max": SEARCHED_MAX,
            "since": _first_shown_day(today),
            "limit": limit,
        },
    )
    return sorted((_product(*row) for row in rows), key=lambda product: -product.sold_until(today))


async def search_by_name(
    tx: Tx, organization_id: UUID, count_id: UUID, patterns: NamePatterns, *, searched_max: int, limit: int
) -> list[Product]:
    """Return products whose code or name matches, those that sold most first, among those that were sold last."""
    rows = await tx.fetch(
        """
        SELECT code, name, prices::text, days::text, last_day
        FROM (
            SELECT code, name, prices, days, sold, last_day,
                   regexp_replace(normalize(searched, NFD), '[\\u0300-\\u036f]', '', 'g') AS searched
            FROM catalog_products
            WHERE organization_id = %(organization_id)s AND count_id = %(count_id)s
            ORDER BY last_day DESC, code
            LIMIT %(searched_max)s
        ) AS latest
        WHERE searched ~ ALL (%(parts)s::text[])
        ORDER BY searched ~ %(first)s DESC, last_day >= %(since)s DESC, sold DESC, code
        LIMIT %(limit)s
        """,
        {
            "organization_id": organization_id,
            "count_id": count_id,
            "parts": patterns.parts,
            "first": patterns.first,
            "searched_max": searched_max,
            "since": _first_shown_day(tx.now.date()),
            "limit": limit,
        },
    )
    return [_product(*row) for row in rows]


async def delete_products(tx: Tx, organization_id: UUID, count_ids: Sequence[UUID]) -> None:
    await tx.execute(
        "DELETE FROM catalog_products WHERE organization_id = %s AND count_id = ANY (%s::uuid[])",
        (organization_id, list(count_ids)),
    )


async def _find_each(tx: Tx, organization_id: UUID, count_id: UUID, codes: Collection[str]) -> list[Product]:
    if not codes:
        return []
    rows = await tx.fetch(
        """
        SELECT code, name, prices::text, days::text, last_day FROM catalog_products
        WHERE organization_id = %s AND count_id = %s AND code = ANY (%s::text[])
        """,
        (organization_id, count_id, sorted(codes)),
    )
    return [_product(*row) for row in rows]


def _product(code: str, name: str, prices: str, days: str, last_day: date) -> Product:
    return Product(
        code,
        name,
        msgspec.json.decode(prices, type=dict[str, tuple[int, int]]),
        msgspec.json.decode(days, type=dict[date, float]),
        last_day,
    )


async def _upsert(tx: Tx, organization_id: UUID, count_id: UUID, products: Sequence[Product]) -> None:
    records = [
        {**msgspec.structs.asdict(product), "searched": product.searched, "sold": product.sold} for product in products
    ]
    await tx.execute(
        """
        INSERT INTO catalog_products
            (organization_id, count_id, code, name, searched, prices, days, sold, last_day)
        SELECT %(organization_id)s, %(count_id)s, code, name, searched, prices, days, sold, last_day
        FROM json_to_recordset(%(records)s::json) AS it (
            code text, name text, searched text, prices json, days json, sold double precision, last_day date
        )
        ON CONFLICT (organization_id, count_id, code) DO UPDATE
        SET name = excluded.name, searched = excluded.searched, prices = excluded.prices, days = excluded.days,
            sold = excluded.sold, last_day = excluded.last_day
        """,
        {
            "organization_id": organization_id,
            "count_id": count_id,
            "records": msgspec.json.encode(records).decode(),
        },
    )


async def _delete_oldest(tx: Tx, organization_id: UUID, count_id: UUID) -> None:
    """Delete the products that were not sold for the longest time, if there are too many."""
    await tx.execute(
        """
        DELETE FROM catalog_products
        WHERE organization_id = %(organization_id)s AND count_id = %(count_id)s AND code IN (
            SELECT code FROM catalog_products
            WHERE organization_id = %(organization_id)s AND count_id = %(count_id)s
            ORDER BY last_day DESC, code
            OFFSET %(products_max)s
        )
        """,
        {"organization_id": organization_id, "count_id": count_id, "products_max": PRODUCTS_MAX},
    )
