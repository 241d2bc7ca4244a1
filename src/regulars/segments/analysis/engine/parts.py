"""Runs of sales as they are stored: each array a part by itself, so that only those are read that are asked for."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from regulars.segments.analysis.engine.blobs import Array, decode, decode_coded, encode, encode_kept, narrow
from regulars.segments.analysis.engine.sales import Words, arranged, grouped
from regulars.segments.columns.model import SalesPack

PARTS: Final = ("customer", "at_s", "store", "kind", "amount", "product", "sale", "quantity", "total")


def unpack(pack: SalesPack, words: Words) -> dict[str, Array]:
    """All arrays of a run that was packed row by row, flat: each line with its sale and its product."""
    lines = np.array(pack.lines, np.int64)
    # Below the first is no product.
    products = np.concatenate((np.zeros(1, np.int64), words.map("product", pack.products)))
    kind = np.array(pack.kind, np.int64)
    return arranged(
        {
            "customer": np.array(pack.customer, np.int64),
            "at_s": np.array(pack.at_s, np.int64),
            "store": words.map("store", pack.stores)[np.array(pack.store, np.int64)],
            "kind": 2 * words.map("kind", pack.currencies)[kind >> 1] + (kind & 1),
            "amount": np.array(pack.amount, np.int64),
            "sale": np.repeat(np.arange(lines.size), lines),
            "product": products[np.array(pack.product, np.int64)],
            "quantity": np.array(pack.quantity, np.int64),
            "total": np.array(pack.total, np.int64),
        }
    )


def unpack_grouped(pack: SalesPack, words: Words) -> dict[str, Array]:
    return grouped(unpack(pack, words))


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
    if name not in {"store", "kind", "product", "quantity"}:
        return {name: decode(content)}
    values, rows = decode_coded(content)
    if name == "quantity":
        return {name: rows, "unit": np.array(values, np.int64)}
    codes = words.map(name, values)
    if name == "product":
        return {name: codes[:-1], "starts": np.concatenate(([0], np.cumsum(rows, dtype=np.int64)))}
    if (codes[:-1] == np.arange(len(values))).all():
        return {name: rows}
    return {name: narrow(codes[rows] if name == "store" else 2 * codes[rows >> 1] + (rows & 1))}


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
