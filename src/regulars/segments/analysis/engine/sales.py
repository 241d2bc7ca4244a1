"""Runs of sales in memory: each run has its own arrays, and all of them share dictionaries of stores and products."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import msgspec
import numpy as np

from regulars.catalog.model import spell
from regulars.segments.analysis.engine.attribute import Values
from regulars.segments.analysis.engine.blobs import Array, Dictionary, narrow
from regulars.segments.analysis.engine.days import Zone
from regulars.segments.columns.model import Run

# Of more products than this, lines are picked one by one, and not product by product.
SLICES_MAX: Final = 2_000
# What may be asked of products: their external ids, and a property, whose key follows.
IDS: Final = "ids"
PROPERTY: Final = "p:"


class _Product(msgspec.Struct):
    external_id: str | None = None
    properties: dict[str, Any] | None = None


_product = msgspec.json.Decoder(_Product)


class Words:
    """What the codes of all runs of an organization mean. Runs are read in threads, which take turns here.

    There may be millions of products, one for each serial number that a till sends along. So whoever counts never has
    them as a whole, only what is asked of them; whoever merges runs has those of some runs.
    """

    def __init__(self) -> None:
        self.stores = Dictionary()
        self.currencies = Dictionary()
        # No product is 0, so the codes of products begin at 1.
        self.products = Dictionary([b""])
        self._told: dict[str, Values] = {}
        self._turn = Lock()

    @property
    def nbytes(self) -> int:
        told = sum(column.nbytes for column in self._told.values())
        return self.stores.nbytes + self.currencies.nbytes + self.products.nbytes + told

    def told(self, part: str) -> Values:
        """What the products have of a part, and how its type reads it; the codes are with the runs."""
        return self._told.setdefault(part, Values(Dictionary(), np.zeros(0, np.int32)))

    def read(self, part: str, products: Sequence[bytes]) -> Array:
        """Of each product the code of what it has; NONE where it has nothing."""
        told = [_told(part, _product.decode(product)) for product in products]
        with self._turn:
            return np.fromiter(map(self.told(part).dictionary.code, told), np.int32, len(told))

    def forget(self, part: str) -> None:
        """Whoever calls it sees to it that no run has codes of it."""
        self._told.pop(part, None)

    def map(self, name: str, values: Sequence[Any]) -> Array:
        """From the places in a list of a run to codes here."""
        dictionary = {"store": self.stores, "kind": self.currencies, "product": self.products}[name]
        with self._turn:
            return dictionary.map(values)


def is_told(part: str) -> bool:
    """Whether it is something that a product has."""
    return part == IDS or part.startswith(PROPERTY)


def _told(part: str, product: _Product) -> str | None:
    if part == IDS:
        return product.external_id
    value = (product.properties or {}).get(part.removeprefix(PROPERTY))
    return None if value is None else spell(value)


@dataclass(slots=True)
class SalesRun:
    """Those arrays of a run that were asked for so far, in the codes of the organization.

    Lines lie product by product: `starts` has where the lines of each begin, what is asked of products has a code for
    each, and `sale` the place of the sale of each line. Lines without a product are nowhere: no condition asks for
    them.
    """

    run: Run
    parts: dict[str, Array] = field(default_factory=dict)
    # Whether the days ascend, so that a window is a stretch of the run.
    is_in_order: bool = False

    @property
    def size(self) -> int:
        return self.parts["customer"].size

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts.values())

    def days(self, zone: Zone) -> Array:
        """The local days of the sales; they are all that is asked of the times, which go."""
        key = f"day:{zone.name}"
        if key not in self.parts:
            days = zone.days(self.parts["at_s"])
            for other in [other for other in list(self.parts) if other.startswith("day:")]:
                del self.parts[other]
            self.is_in_order = bool((days[1:] >= days[:-1]).all())
            self.parts[key] = days
            del self.parts["at_s"]
        return self.parts[key]

    def pick(self, passing: Array | None, *names: str) -> list[Array]:
        """Of the lines whose product passes, by its place in the run, or of all, these arrays."""
        parts = [self.parts[name] for name in names]
        if passing is None:
            return parts
        starts, groups = self.parts["starts"], np.flatnonzero(passing)
        if groups.size == passing.size:
            return parts
        if groups.size > SLICES_MAX:
            lines = np.repeat(passing, np.diff(starts))
            return [part[lines] for part in parts]
        stretches = list(zip(starts[groups].tolist(), starts[groups + 1].tolist(), strict=True))
        return [
            np.concatenate([part[first:last] for first, last in stretches]) if stretches else part[:0] for part in parts
        ]

    def measures(self, name: str, lines: Array) -> Array:
        """What these lines measure: totals as they are; quantities, kept by what divides all of them, in millionths."""
        return lines.astype(np.int64) * self.parts["unit"][0] if name == "quantity" else lines


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
