"""Sales as a run of columns, in the order they came."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from regulars.conditions.netting import MILLION, millionths
from regulars.kit.db import Tx
from regulars.segments import queries as columns
from regulars.segments.columns.model import WHOLE, Run, SalesPack, State, pack_sales
from regulars.segments.feed.customers import feed_customers
from regulars.segments.feed.queries import SaleRow


class _Line(msgspec.Struct, gc=False):
    quantity: int | float
    total_price_cents: int
    # Told apart by its very bytes: what it says is read once for all lines that say the same.
    product: msgspec.Raw = msgspec.Raw(b"null")


_lines = msgspec.json.Decoder(list[_Line])
_NO_PRODUCT = b"null"


async def feed_sales(tx: Tx, organization_id: UUID, state: State, sales: Sequence[SaleRow]) -> None:
    """Write the sales of known customers; whoever calls sees to it that each sale comes here once.

    A sale whose profile is not there was recorded while its customer was erased, and belongs to nobody.
    """
    named = {sale.profile_id for sale in sales if sale.profile_id is not None}
    if not named:
        return
    numbers = await columns.find_numbers(tx, organization_id, state.epoch, sorted(named))
    numbers |= await feed_customers(tx, organization_id, state, named - numbers.keys())
    pack = pack_of(sales, numbers)
    if not pack.customer:
        return
    content = pack_sales(pack)
    run = Run(
        state.next_run,
        "sales",
        0,
        state.next_run,
        len(pack.customer),
        len(content),
        min(pack.at_s),
        max(pack.at_s),
    )
    state.next_run += 1
    await columns.insert_run(tx, organization_id, state.epoch, run)
    await columns.insert_blob(tx, organization_id, state.epoch, run.id, part=WHOLE, content=content)


def pack_of(sales: Sequence[SaleRow], numbers: Mapping[UUID, int]) -> SalesPack:
    pack = SalesPack([], [], [], [], [], [], [], [], [], [], [], [])
    stores: dict[bytes, int] = {}
    currencies: dict[str, int] = {}
    products: dict[bytes, int] = {}
    for sale in sales:
        number = None if sale.profile_id is None else numbers.get(sale.profile_id)
        if number is None:
            continue
        is_return = sale.type == "RETURN"
        lines = _lines.decode(sale.line_items)
        pack.customer.append(number)
        pack.at_s.append(sale.at_s)
        pack.store.append(stores.setdefault(sale.store_id.bytes, len(stores)))
        pack.kind.append(2 * currencies.setdefault(sale.currency, len(currencies)) + is_return)
        pack.amount.append(-sale.total_amount_cents if is_return else sale.total_amount_cents)
        pack.lines.append(len(lines))
        _add_lines(pack, lines, products, is_return=is_return)
    pack.stores.extend(stores)
    pack.currencies.extend(currencies)
    pack.products.extend(products)
    return pack


def _add_lines(pack: SalesPack, lines: Sequence[_Line], products: dict[bytes, int], *, is_return: bool) -> None:
    quantities, totals, codes = [], [], []
    of_products = []
    for line in lines:
        product = bytes(line.product)
        quantity = line.quantity * MILLION if isinstance(line.quantity, int) else millionths(line.quantity)
        quantities.append(quantity)
        totals.append(line.total_price_cents)
        if product == _NO_PRODUCT:
            codes.append(0)
        else:
            codes.append(products.setdefault(product, len(products)) + 1)
            of_products.append(quantity)
    if is_return:
        sign = sign_of(of_products, is_return=True)
        quantities = [sign * quantity for quantity in quantities]
        sign = sign_of(totals, is_return=True)
        totals = [sign * total for total in totals]
    pack.product.extend(codes)
    pack.quantity.extend(quantities)
    pack.total.extend(totals)


def sign_of(values: Sequence[int], *, is_return: bool) -> int:
    """By what the values of a sale's lines are multiplied: those of a return that sum below 0 are signed already."""
    return -1 if is_return and sum(values) >= 0 else 1
