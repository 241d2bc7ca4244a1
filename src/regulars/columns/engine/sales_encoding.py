"""Encodes and decodes runs of sales, which are immutable stored chunks. Each array of a run is stored as a separate
part, so that a query loads only the parts it needs; a new run is packed, with all arrays in one part.

A flat array has one element per sale or per line; codes stand for stores, currencies and products. The kind of a sale
is twice the code of its currency, plus 1 for a return.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from regulars.columns.engine.encoding import Array, decode, decode_coded, encode, encode_values, narrow
from regulars.columns.engine.sales_runs import SCALED, Dictionaries, is_product_part, scale_of
from regulars.columns.model import ERASED, SalesPack

SALE_PARTS: Final = ("customer", "at_s", "store", "kind", "amount", "discount", "tax", "units", "lines")
# The arrays of lines with a product and of lines without a product, by the array with the index of each line's sale.
LINE_PARTS: Final = {
    "sale": ("product", "quantity", "line_units", "total"),
    "other_sale": ("other_units", "other_total"),
}
PARTS: Final = (*SALE_PARTS, *LINE_PARTS, *LINE_PARTS["sale"], *LINE_PARTS["other_sale"])
_CODED: Final = ("store", "kind", "product", *SCALED)


def unpack(pack: SalesPack, dictionaries: Dictionaries) -> dict[str, Array]:
    """All arrays of a packed run, flat and unsorted."""
    # In a pack, product 0 means no product; products count from 1.
    products = np.concatenate((np.zeros(1, np.int64), dictionaries.map("product", pack.of_lines.products)))
    flat = _unpack_flat(pack, dictionaries)
    return flat | {"product": products[flat["product"]]}


def unpack_grouped(pack: SalesPack, dictionaries: Dictionaries, product_parts: Iterable[str]) -> dict[str, Array]:
    """All arrays of a packed run with lines grouped by product, and the arrays of these product parts."""
    parts = group_by_product(sort_flat(_unpack_flat(pack, dictionaries)))
    products = [pack.of_lines.products[code - 1] for code in parts.pop("product").tolist()]
    return parts | {part: dictionaries.encode_products(part, products) for part in product_parts}


def _unpack_flat(pack: SalesPack, dictionaries: Dictionaries) -> dict[str, Array]:
    """Flat, unsorted arrays; a product is its index in the pack plus 1."""
    kind = read_numbers(pack.kind)
    return with_sums_of_lines(
        {
            **{name: read_numbers(getattr(pack, name)) for name in ("customer", "at_s", *_MONEY, "lines")},
            "store": dictionaries.map("store", pack.stores)[read_numbers(pack.store)],
            "kind": 2 * dictionaries.map("kind", pack.currencies)[kind >> 1] + (kind & 1),
        },
        {name: read_numbers(getattr(pack.of_lines, name)) for name in LINE_PARTS["sale"]},
    )


def read_numbers(packed: bytes) -> Array:
    """The numbers that `pack_numbers` packed."""
    return np.frombuffer(packed, f"i{packed[0]}", offset=1)


_MONEY: Final = ("amount", "discount", "tax")


def with_sums_of_lines(sales: Mapping[str, Array], lines: Mapping[str, Array]) -> dict[str, Array]:
    """Combine flat arrays of sales and of their lines, and add the units of each sale. `lines` is in the order of the
    sales; product 0 means no product."""
    sale = np.repeat(np.arange(sales["lines"].size), sales["lines"])
    ends = np.cumsum(sales["lines"])
    units_before = _starts(lines["line_units"])
    has_product = lines["product"] > 0
    return {
        **sales,
        "units": units_before[ends] - units_before[ends - sales["lines"]],
        "sale": sale[has_product],
        **{name: part[has_product] for name, part in lines.items()},
        "other_sale": sale[~has_product],
        "other_units": lines["line_units"][~has_product],
        "other_total": lines["total"][~has_product],
    }


def encode_parts(flat: Mapping[str, Array], dictionaries: Dictionaries) -> dict[str, bytes]:
    """Encode sorted flat arrays; only dictionary values in use are written."""
    products, counts = np.unique(flat["product"], return_counts=True)
    return {
        **{name: encode(flat[name]) for name in ("customer", "at_s", *_MONEY, "lines", "total", "other_total")},
        "store": _encode_codes(flat["store"], dictionaries.stores.values),
        "kind": _encode_kinds(flat["kind"], dictionaries),
        "product": encode_values([dictionaries.products.values[code] for code in products.tolist()], counts),
        # The sale indexes of a product ascend, so their differences are small numbers, which compress well.
        **{name: encode(np.diff(flat[name], prepend=0)) for name in LINE_PARTS},
        **{name: _encode_scaled(flat[name]) for name in SCALED},
    }


def _encode_scaled(values: Array) -> bytes:
    """Encode millionths divided by their greatest common divisor, which is a million if all values are whole
    numbers."""
    unit = max(1, int(np.gcd.reduce(values))) if values.size else 1
    return encode_values([unit], values // unit)


def read_part(name: str, content: bytes, dictionaries: Dictionaries) -> dict[str, Array]:
    """Decode a part into arrays with the organization-wide codes."""
    if name in LINE_PARTS:
        return {name: np.cumsum(decode(content), dtype=np.int32)}
    if name not in _CODED and not is_product_part(name):
        return {name: decode(content)}
    if is_product_part(name):
        with dictionaries.products_lock:
            values, rows = decode_coded(content)
            return {name: dictionaries.encode_products(name, values), "starts": _starts(rows)}
    values, rows = decode_coded(content)
    if name in SCALED:
        return {name: rows, scale_of(name): np.array(values, np.int64)}
    codes = dictionaries.map(name, values)
    if name == "product":
        return {name: codes[:-1], "starts": _starts(rows)}
    if (codes[:-1] == np.arange(len(values))).all():
        # The codes of the run are the organization-wide codes already.
        return {name: rows}
    return {name: narrow(codes[rows] if name == "store" else 2 * codes[rows >> 1] + (rows & 1))}


def stored_part_of(part: str) -> str:
    """The name of the stored part from which a part is decoded: products are stored whole."""
    return "product" if is_product_part(part) else part


def _starts(counts: Array) -> Array:
    """Where each group begins, for groups of these sizes, and the total."""
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def read_flat(blobs: Mapping[str, bytes], dictionaries: Dictionaries) -> dict[str, Array]:
    """All arrays of a merged run, flat."""
    parts: dict[str, Array] = {}
    for name in PARTS:
        parts |= read_part(name, blobs[name], dictionaries)
    starts = parts.pop("starts")
    scaled = {name: parts[name].astype(np.int64) * parts.pop(scale_of(name))[0] for name in SCALED}
    return parts | {"product": np.repeat(parts["product"], np.diff(starts)), **scaled}


def _encode_codes(codes: Array, values: Sequence[Any]) -> bytes:
    used, indexes = np.unique(codes, return_inverse=True)
    return encode_values([values[code] for code in used.tolist()], indexes)


def _encode_kinds(kinds: Array, dictionaries: Dictionaries) -> bytes:
    used, indexes = np.unique(kinds >> 1, return_inverse=True)
    return encode_values([dictionaries.currencies.values[code] for code in used.tolist()], 2 * indexes + (kinds & 1))


def group_by_product(flat: Mapping[str, Array]) -> dict[str, Array]:
    """Convert lines sorted by product to a list of products, each with the slice of its lines."""
    product, counts = np.unique(flat["product"], return_counts=True)
    parts = {name: narrow(part) for name, part in flat.items() if name != "product"}
    scales = {scale_of(name): np.ones(1, np.int64) for name in SCALED}
    return parts | scales | {"product": product, "starts": np.concatenate(([0], np.cumsum(counts)))}


def sort_flat(flat: Mapping[str, Array]) -> dict[str, Array]:
    """Sort sales by time, so that a window is a slice, and lines by product."""
    order = np.argsort(flat["at_s"], kind="stable")
    new_index = np.empty_like(order)
    new_index[order] = np.arange(order.size)
    parts = {name: flat[name][order] for name in SALE_PARTS}
    for sale, names in LINE_PARTS.items():
        sales = new_index[flat[sale]]
        lines = np.argsort(sales if sale == "other_sale" else flat["product"].astype(np.int64) * order.size + sales)
        parts |= {sale: sales[lines], **{name: flat[name][lines] for name in names}}
    return parts


def merge(runs: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Concatenate flat runs and sort the result."""
    offsets = np.cumsum([0, *(run["customer"].size for run in runs)])[:-1]
    shifted = [
        {**run, **{sale: run[sale].astype(np.int64) + offset for sale in LINE_PARTS}}
        for run, offset in zip(runs, offsets, strict=True)
    ]
    return sort_flat({name: np.concatenate([run[name] for run in shifted]) for name in PARTS})


def split_erased(flat: Mapping[str, Array], erased_customers: Array) -> tuple[dict[str, Array], dict[str, Array]]:
    """Split sales into those of existing customers, and those of erased customers, without the customer; both
    sorted."""
    flat = sort_flat(flat)
    is_erased = np.isin(flat["customer"], erased_customers)
    erased = _take(flat, is_erased)
    return _take(flat, ~is_erased), {**erased, "customer": np.full_like(erased["customer"], ERASED)}


def _take(flat: Mapping[str, Array], mask: Array) -> dict[str, Array]:
    """The sales of the mask, with their lines."""
    parts = {name: flat[name][mask] for name in SALE_PARTS}
    new_index = np.cumsum(mask) - 1
    for sale, names in LINE_PARTS.items():
        lines = mask[flat[sale]]
        parts |= {sale: new_index[flat[sale][lines]], **{name: flat[name][lines] for name in names}}
    return parts
