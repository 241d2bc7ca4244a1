"""How runs of sales are stored: each array is a part of its own, so that a query loads only the parts it needs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from regulars.segments.analysis.engine.encoding import Array, decode, decode_coded, encode, encode_values, narrow
from regulars.segments.analysis.engine.sales_runs import Dictionaries, is_product_part
from regulars.segments.columns.model import SalesPack

PARTS: Final = ("customer", "at_s", "store", "kind", "amount", "product", "sale", "quantity", "total")


def unpack(pack: SalesPack, dictionaries: Dictionaries) -> dict[str, Array]:
    """All arrays of a run that was packed row by row, flat: each line with its sale and its product."""
    # Product 0 means no product.
    products = np.concatenate((np.zeros(1, np.int64), dictionaries.map("product", pack.products)))
    flat = _unpacked(pack, dictionaries)
    return arranged(flat | {"product": products[flat["product"]]})


def unpack_grouped(pack: SalesPack, dictionaries: Dictionaries, product_parts: Iterable[str]) -> dict[str, Array]:
    """The same grouped by product, with these product parts."""
    parts = grouped(arranged(_unpacked(pack, dictionaries)))
    products = [pack.products[number - 1] for number in parts.pop("product").tolist()]
    return parts | {part: dictionaries.encode_products(part, products) for part in product_parts}


def _unpacked(pack: SalesPack, dictionaries: Dictionaries) -> dict[str, Array]:
    """Unsorted; products by their number in the pack, which counts from 1."""
    lines = np.array(pack.lines, np.int64)
    kind = np.array(pack.kind, np.int64)
    return {
        "customer": np.array(pack.customer, np.int64),
        "at_s": np.array(pack.at_s, np.int64),
        "store": dictionaries.map("store", pack.stores)[np.array(pack.store, np.int64)],
        "kind": 2 * dictionaries.map("kind", pack.currencies)[kind >> 1] + (kind & 1),
        "amount": np.array(pack.amount, np.int64),
        "sale": np.repeat(np.arange(lines.size), lines),
        "product": np.array(pack.product, np.int64),
        "quantity": np.array(pack.quantity, np.int64),
        "total": np.array(pack.total, np.int64),
    }


def encode_parts(flat: Mapping[str, Array], dictionaries: Dictionaries) -> dict[str, bytes]:
    """Encode arranged arrays; only dictionary values in use are written."""
    products, counts = np.unique(flat["product"], return_counts=True)
    unit = max(1, int(np.gcd.reduce(flat["quantity"]))) if flat["quantity"].size else 1
    return {
        **{name: encode(flat[name]) for name in ("customer", "at_s", "amount", "total")},
        "store": _encode_codes(flat["store"], dictionaries.stores.values),
        "kind": _kinds(flat["kind"], dictionaries),
        "product": encode_values([dictionaries.products.values[code] for code in products.tolist()], counts),
        # The sales of a product ascend, so the steps between them are small.
        "sale": encode(np.diff(flat["sale"], prepend=0)),
        "quantity": encode_values([unit], flat["quantity"] // unit),
    }


def read_part(name: str, content: bytes, dictionaries: Dictionaries) -> dict[str, Array]:
    """Decode a part into arrays, in the codes of the organization."""
    if name == "sale":
        return {name: np.cumsum(decode(content), dtype=np.int32)}
    if name not in {"store", "kind", "product", "quantity"} and not is_product_part(name):
        return {name: decode(content)}
    values, rows = decode_coded(content)
    if is_product_part(name):
        return {name: dictionaries.encode_products(name, values), "starts": _starts(rows)}
    if name == "quantity":
        return {name: rows, "unit": np.array(values, np.int64)}
    codes = dictionaries.map(name, values)
    if name == "product":
        return {name: codes[:-1], "starts": _starts(rows)}
    if (codes[:-1] == np.arange(len(values))).all():
        return {name: rows}
    return {name: narrow(codes[rows] if name == "store" else 2 * codes[rows >> 1] + (rows & 1))}


def stored_as(part: str) -> str:
    """The stored part that a part is decoded from."""
    return "product" if is_product_part(part) else part


def _starts(counts: Array) -> Array:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def read_flat(blobs: Mapping[str, bytes], dictionaries: Dictionaries) -> dict[str, Array]:
    """All arrays of a stored run, flat."""
    parts: dict[str, Array] = {}
    for name in PARTS:
        parts |= read_part(name, blobs[name], dictionaries)
    unit, starts = parts.pop("unit"), parts.pop("starts")
    return parts | {
        "product": np.repeat(parts["product"], np.diff(starts)),
        "quantity": parts["quantity"].astype(np.int64) * unit[0],
    }


def _encode_codes(codes: Array, values: Sequence[Any]) -> bytes:
    used, places = np.unique(codes, return_inverse=True)
    return encode_values([values[code] for code in used.tolist()], places)


def _kinds(kinds: Array, dictionaries: Dictionaries) -> bytes:
    used, places = np.unique(kinds >> 1, return_inverse=True)
    return encode_values([dictionaries.currencies.values[code] for code in used.tolist()], 2 * places + (kinds & 1))


def grouped(flat: Mapping[str, Array]) -> dict[str, Array]:
    """From lines sorted by product to products with the slice of their lines."""
    product, counts = np.unique(flat["product"], return_counts=True)
    parts = {name: narrow(part) for name, part in flat.items() if name != "product"}
    return parts | {"product": product, "starts": np.concatenate(([0], np.cumsum(counts))), "unit": np.ones(1, int)}


def arranged(flat: Mapping[str, Array]) -> dict[str, Array]:
    """Sort sales by time, so that a window is a slice, and lines by product."""
    order = np.argsort(flat["at_s"], kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    sale = place[flat["sale"]]
    lines = np.lexsort((sale, flat["product"]))
    lines = lines[np.searchsorted(flat["product"][lines], 1) :]
    return {
        **{name: flat[name][order] for name in ("customer", "at_s", "store", "kind", "amount")},
        **{name: flat[name][lines] for name in ("product", "quantity", "total")},
        "sale": sale[lines],
    }


def merge(runs: Sequence[Mapping[str, Array]], dead: Array | None = None) -> dict[str, Array]:
    """Concatenate flat runs, without the sales of erased customers."""
    sizes = np.cumsum([0, *(run["customer"].size for run in runs)])
    moved = [{**run, "sale": run["sale"].astype(np.int64) + first} for run, first in zip(runs, sizes[:-1], strict=True)]
    together = {name: np.concatenate([run[name].astype(np.int64) for run in moved]) for name in moved[0]}
    if dead is not None and dead.size:
        remaining = ~np.isin(together["customer"], dead)
        lines = remaining[together["sale"]]
        together["sale"] = (np.cumsum(remaining) - 1)[together["sale"]]
        for name, part in together.items():
            together[name] = part[lines if name in {"sale", "product", "quantity", "total"} else remaining]
    return arranged(together)
