"""Runs of sales as they are stored: each array a part by itself, so that only those are read that are asked for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from regulars.segments.analysis.engine.encoding import Array, decode, decode_coded, encode, encode_kept, narrow
from regulars.segments.analysis.engine.sales_runs import Words, is_told
from regulars.segments.columns.model import SalesPack

PARTS: Final = ("customer", "at_s", "store", "kind", "amount", "product", "sale", "quantity", "total")


def unpack(pack: SalesPack, words: Words) -> dict[str, Array]:
    """All arrays of a run that was packed row by row, flat: each line with its sale and its product."""
    # Below the first is no product.
    products = np.concatenate((np.zeros(1, np.int64), words.map("product", pack.products)))
    flat = _unpacked(pack, words)
    return arranged(flat | {"product": products[flat["product"]]})


def unpack_grouped(pack: SalesPack, words: Words, told: Iterable[str]) -> dict[str, Array]:
    """The same product by product, with what is asked of the products."""
    parts = grouped(arranged(_unpacked(pack, words)))
    products = [pack.products[number - 1] for number in parts.pop("product").tolist()]
    return parts | {part: words.read(part, products) for part in told}


def _unpacked(pack: SalesPack, words: Words) -> dict[str, Array]:
    """In no order; of the products, which the pack counts from 1, their numbers there."""
    lines = np.array(pack.lines, np.int64)
    kind = np.array(pack.kind, np.int64)
    return {
        "customer": np.array(pack.customer, np.int64),
        "at_s": np.array(pack.at_s, np.int64),
        "store": words.map("store", pack.stores)[np.array(pack.store, np.int64)],
        "kind": 2 * words.map("kind", pack.currencies)[kind >> 1] + (kind & 1),
        "amount": np.array(pack.amount, np.int64),
        "sale": np.repeat(np.arange(lines.size), lines),
        "product": np.array(pack.product, np.int64),
        "quantity": np.array(pack.quantity, np.int64),
        "total": np.array(pack.total, np.int64),
    }


def encode_parts(flat: Mapping[str, Array], words: Words) -> dict[str, bytes]:
    """Of arranged arrays; only words that are used go along."""
    products, counts = np.unique(flat["product"], return_counts=True)
    unit = max(1, int(np.gcd.reduce(flat["quantity"]))) if flat["quantity"].size else 1
    return {
        **{name: encode(flat[name]) for name in ("customer", "at_s", "amount", "total")},
        "store": _with_words(flat["store"], words.stores.values),
        "kind": _kinds(flat["kind"], words),
        "product": encode_kept([words.products.values[code] for code in products.tolist()], counts),
        # The sales of a product ascend, so the steps between them are small.
        "sale": encode(np.diff(flat["sale"], prepend=0)),
        "quantity": encode_kept([unit], flat["quantity"] // unit),
    }


def read_part(name: str, content: bytes, words: Words) -> dict[str, Array]:
    """What a part becomes in memory, in the codes of the organization."""
    if name == "sale":
        return {name: np.cumsum(decode(content), dtype=np.int32)}
    if name not in {"store", "kind", "product", "quantity"} and not is_told(name):
        return {name: decode(content)}
    values, rows = decode_coded(content)
    if is_told(name):
        return {name: words.read(name, values), "starts": _starts(rows)}
    if name == "quantity":
        return {name: rows, "unit": np.array(values, np.int64)}
    codes = words.map(name, values)
    if name == "product":
        return {name: codes[:-1], "starts": _starts(rows)}
    if (codes[:-1] == np.arange(len(values))).all():
        return {name: rows}
    return {name: narrow(codes[rows] if name == "store" else 2 * codes[rows >> 1] + (rows & 1))}


def stored_as(part: str) -> str:
    """The part of a stored run that it is read from."""
    return "product" if is_told(part) else part


def _starts(counts: Array) -> Array:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def read_flat(blobs: Mapping[str, bytes], words: Words) -> dict[str, Array]:
    """All arrays of a stored run, flat."""
    parts: dict[str, Array] = {}
    for name in PARTS:
        parts |= read_part(name, blobs[name], words)
    unit, starts = parts.pop("unit"), parts.pop("starts")
    return parts | {
        "product": np.repeat(parts["product"], np.diff(starts)),
        "quantity": parts["quantity"].astype(np.int64) * unit[0],
    }


def _with_words(codes: Array, values: Sequence[Any]) -> bytes:
    used, places = np.unique(codes, return_inverse=True)
    return encode_kept([values[code] for code in used.tolist()], places)


def _kinds(kinds: Array, words: Words) -> bytes:
    used, places = np.unique(kinds >> 1, return_inverse=True)
    return encode_kept([words.currencies.values[code] for code in used.tolist()], 2 * places + (kinds & 1))


def grouped(flat: Mapping[str, Array]) -> dict[str, Array]:
    """From lines that each name their product, in the order of products, to products with their lines."""
    product, counts = np.unique(flat["product"], return_counts=True)
    parts = {name: narrow(part) for name, part in flat.items() if name != "product"}
    return parts | {"product": product, "starts": np.concatenate(([0], np.cumsum(counts))), "unit": np.ones(1, int)}


def arranged(flat: Mapping[str, Array]) -> dict[str, Array]:
    """Sales in the order of their times, so that a window is a stretch, and lines in the order of their products."""
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
    """The arrays of flat runs together, without the sales of customers who are gone."""
    sizes = np.cumsum([0, *(run["customer"].size for run in runs)])
    moved = [{**run, "sale": run["sale"].astype(np.int64) + first} for run, first in zip(runs, sizes[:-1], strict=True)]
    together = {name: np.concatenate([run[name].astype(np.int64) for run in moved]) for name in moved[0]}
    if dead is not None and dead.size:
        kept = ~np.isin(together["customer"], dead)
        lines = kept[together["sale"]]
        together["sale"] = (np.cumsum(kept) - 1)[together["sale"]]
        for name, part in together.items():
            together[name] = part[lines if name in {"sale", "product", "quantity", "total"} else kept]
    return arranged(together)
