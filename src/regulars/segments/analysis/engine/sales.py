"""Runs of sales in memory: each run has its own arrays, and all of them share dictionaries of stores and products."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from regulars.segments.analysis.engine.blobs import (
    Array,
    Dictionary,
    decode,
    decode_coded,
    encode,
    encode_kept,
    narrow,
)
from regulars.segments.analysis.engine.days import Zone
from regulars.segments.columns.model import Run, SalesPack

# Of each sale, and of each line.
OF_SALES: Final = ("customer", "at_s", "store", "kind", "amount", "lines")
OF_LINES: Final = ("product", "quantity", "total")
# The values that codes stand for.
WORDS: Final = {"store": "stores", "kind": "currencies", "product": "products"}
PARTS: Final = (*OF_SALES, *OF_LINES)


class _Product(msgspec.Struct):
    external_id: str | None = None
    properties: dict[str, Any] | None = None


_product = msgspec.json.Decoder(_Product)


class Product(msgspec.Struct, frozen=True):
    external_id: str | None
    properties: dict[str, Any]


class Words:
    """What the codes of all runs of an organization mean."""

    def __init__(self) -> None:
        self.stores = Dictionary()
        self.currencies = Dictionary()
        # No product is 0, so the codes of products begin at 1.
        self.products = Dictionary([b""])
        self._read: list[Product] = [Product(None, {})]

    def list_products(self) -> Sequence[Product]:
        for raw in self.products.values[len(self._read) :]:
            told = _product.decode(raw)
            self._read.append(Product(told.external_id, told.properties or {}))
        return self._read


@dataclass(slots=True)
class SalesRun:
    """Those arrays of a run that were asked for so far, in the codes of the organization."""

    run: Run
    parts: dict[str, Array] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts.values())

    def line_sale(self) -> Array:
        """For each line the place of its sale."""
        if "line_sale" not in self.parts:
            counts = self.parts["lines"]
            self.parts["line_sale"] = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
        return self.parts["line_sale"]

    def days(self, zone: Zone, name: str) -> Array:
        key = f"day:{name}"
        if key not in self.parts:
            for other in [other for other in self.parts if other.startswith("day:")]:
                del self.parts[other]
            self.parts[key] = zone.days(self.parts["at_s"].astype(np.int64))
            # The days are all that is asked of the times.
            del self.parts["at_s"]
        return self.parts[key]


def unpack(pack: SalesPack, words: Words) -> dict[str, Array]:
    """All arrays of a run that was packed row by row."""
    parts = {
        "customer": np.array(pack.customer, np.int64),
        "at_s": np.array(pack.at_s, np.int64),
        "store": np.array(pack.store, np.int64),
        "kind": np.array(pack.kind, np.int64),
        "amount": np.array(pack.amount, np.int64),
        "lines": np.array(pack.lines, np.int64),
        "product": np.array(pack.product, np.int64),
        "quantity": np.array(pack.quantity, np.int64),
        "total": np.array(pack.total, np.int64),
    }
    named: dict[str, Sequence[Any]] = {"store": pack.stores, "kind": pack.currencies, "product": pack.products}
    return {name: narrow(recoded(name, part, named.get(name), words)) for name, part in parts.items()}


def read_part(name: str, content: bytes, words: Words) -> Array:
    if name in WORDS:
        values, codes = decode_coded(content)
        return narrow(recoded(name, codes, values, words))
    return decode(content)


def recoded(name: str, codes: Array, values: Sequence[Any] | None, words: Words) -> Array:
    """From the codes of a run to those of its organization."""
    if values is None:
        return codes
    again: Array
    match name:
        case "store":
            again = words.stores.map(values)[codes]
        case "kind":
            again = 2 * words.currencies.map(values)[codes >> 1] + (codes & 1)
        case _:
            # Below the first is no product.
            again = np.concatenate((np.zeros(1, np.int32), words.products.map(values)))[codes]
    return again


def merge(runs: Sequence[Mapping[str, Array]], dead: Array | None = None) -> dict[str, Array]:
    """The arrays of runs one after the other, without the sales of customers who are gone."""
    together = {name: np.concatenate([run[name].astype(np.int64) for run in runs]) for name in PARTS}
    if dead is None or not dead.size:
        return together
    kept = ~np.isin(together["customer"], dead)
    lines = np.repeat(kept, together["lines"])
    return {name: part[lines if name in OF_LINES else kept] for name, part in together.items()}


def encode_parts(parts: Mapping[str, Array], words: Words) -> dict[str, bytes]:
    """Each array by itself, so that only those are read that are asked for; only words that are used go along."""
    encoded: dict[str, bytes] = {}
    for name in PARTS:
        part = parts[name]
        if name == "store":
            encoded[name] = _with_words(part, words.stores.values)
        elif name == "kind":
            encoded[name] = _kinds(part, words)
        elif name == "product":
            encoded[name] = _products(part, words)
        else:
            encoded[name] = encode(part)
    return encoded


def _with_words(codes: Array, values: Sequence[Any]) -> bytes:
    used, places = np.unique(codes, return_inverse=True)
    return encode_kept([values[code] for code in used.tolist()], places)


def _kinds(kinds: Array, words: Words) -> bytes:
    used, places = np.unique(kinds >> 1, return_inverse=True)
    return encode_kept([words.currencies.values[code] for code in used.tolist()], 2 * places + (kinds & 1))


def _products(codes: Array, words: Words) -> bytes:
    used = np.unique(codes)
    used = used[used > 0]
    places = np.zeros(len(words.products) + 1, np.int64)
    places[used] = np.arange(1, used.size + 1)
    return encode_kept([words.products.values[code] for code in used.tolist()], places[codes])
