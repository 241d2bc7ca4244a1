"""Packs sales as columns of numbers, for storage. For speed, built-in functions replace Python loops where possible.

Stores, currencies and products become codes, which are indexes in a list of their values.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, chain, compress
from operator import attrgetter
from typing import Final

import msgspec

from regulars.columns.feed.sales_queries import WITH_ERASED_PROFILE, WITHOUT_PROFILE, SaleColumns
from regulars.columns.model import (
    ANONYMOUS_SALES,
    ERASED,
    IDENTIFIED_SALES,
    NO_CUSTOMER,
    LinePack,
    SalesPack,
    pack_numbers,
)
from regulars.sales.model import MILLION, millionths

# The reserved profile ids of sales without a customer, with their numbers.
RESERVED_NUMBERS: Final = {WITHOUT_PROFILE.bytes: NO_CUSTOMER, WITH_ERASED_PROFILE.bytes: ERASED}
_RETURN: Final = ord("R")
_MICROSECONDS_PER_S: Final = 1_000_000
# PostgreSQL counts timestamps from 2000-01-01; this is that day in Unix seconds.
_POSTGRES_EPOCH_S: Final = 946_684_800


class _Line(msgspec.Struct, gc=False):
    quantity: int | float
    total_price_cents: int
    unit: str | None = None
    # The JSON of the product. It is compared by its bytes, so that equal products are decoded only once.
    product: msgspec.Raw = msgspec.Raw(b"null")


_lines = msgspec.json.Decoder(list[list[_Line]])
_NO_PRODUCT: Final = b"null"


def pack_runs(
    sales: SaleColumns, customers: Sequence[int], *, without: Collection[bytes]
) -> Iterator[tuple[str, SalesPack]]:
    """Pack the sales with a customer, and the sales without one, except those with an id in `without`."""
    lines = _lines.decode(b"[" + sales.line_items + b"]")
    masks = {
        IDENTIFIED_SALES: [number >= 0 for number in customers],
        ANONYMOUS_SALES: [number < 0 for number in customers],
    }
    for kind, mask in masks.items():
        if without:
            for index, sale_id in enumerate(sales.ids):
                mask[index] &= sale_id not in without
        if any(mask):
            yield kind, _pack(sales, list(compress(customers, mask)), list(compress(lines, mask)), mask)


def _pack(sales: SaleColumns, customers: list[int], lines: list[list[_Line]], mask: list[bool]) -> SalesPack:
    """Pack the sales for which `mask` is true; `customers` and `lines` belong to these sales only."""
    at_s = [time // _MICROSECONDS_PER_S + _POSTGRES_EPOCH_S for time in compress(sales.occurred_at, mask)]
    are_returns = [sale_type == _RETURN for sale_type in compress(sales.types, mask)]
    returns = [index for index, is_return in enumerate(are_returns) if is_return]
    stores, currencies = _Codes(), _Codes()
    currency_codes = map(currencies.__getitem__, compress(sales.currencies, mask))

    def pack_cents(column: Sequence[int]) -> bytes:
        values = list(compress(column, mask))
        for index in returns:
            values[index] = -values[index]
        return pack_numbers(values)

    return SalesPack(
        sales=len(customers),
        first_s=min(at_s),
        last_s=max(at_s),
        customer=pack_numbers(customers),
        at_s=pack_numbers(at_s),
        store=pack_numbers(list(map(stores.__getitem__, compress(sales.stores, mask)))),
        kind=pack_numbers([2 * code + is_return for code, is_return in zip(currency_codes, are_returns, strict=True)]),
        amount=pack_cents(sales.amounts),
        discount=pack_cents(sales.discounts),
        tax=pack_cents(sales.taxes),
        lines=pack_numbers(list(map(len, lines))),
        stores=list(stores),
        currencies=[currency.decode() for currency in currencies],
        of_lines=_pack_lines(lines, returns),
    )


def _pack_lines(lines: list[list[_Line]], returns: Sequence[int]) -> LinePack:
    """Pack the lines of all sales; `returns` has the indexes of the sales that are returns."""
    flat = list(chain.from_iterable(lines))
    products = _Codes({_NO_PRODUCT: 0})
    codes = list(map(products.__getitem__, map(bytes, map(attrgetter("product"), flat))))
    line_quantities = [line.quantity for line in flat]
    quantities = [quantity * MILLION if type(quantity) is int else millionths(quantity) for quantity in line_quantities]
    units = quantities.copy()
    for index, line in enumerate(flat):
        if line.unit is not None:
            units[index] = MILLION if quantities[index] > 0 else -MILLION
    totals = [line.total_price_cents for line in flat]
    ends = list(accumulate(map(len, lines)))
    for index in returns:
        of_sale = slice(ends[index] - len(lines[index]), ends[index])
        _negate(quantities, of_sale, total=sum(compress(quantities[of_sale], codes[of_sale])))
        _negate(units, of_sale, total=sum(units[of_sale]))
        _negate(totals, of_sale, total=sum(totals[of_sale]))
    return LinePack(
        product=pack_numbers(codes),
        quantity=pack_numbers(quantities),
        line_units=pack_numbers(units),
        total=pack_numbers(totals),
        products=list(products)[1:],
    )


def _negate(values: list[int], of_sale: slice, *, total: int) -> None:
    """Negate the values of the lines of a return, unless their sum `total` is negative already."""
    if total >= 0:
        values[of_sale] = [-value for value in values[of_sale]]


class _Codes(dict[bytes, int]):
    """Maps each value to a code; a new value gets the next code."""

    def __missing__(self, value: bytes) -> int:
        code = self[value] = len(self)
        return code
