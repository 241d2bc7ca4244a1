"""The columns that a file may have, derived from the request types of the API: one column for each field.

A dot names a field of an inner object (`address.locality`, `line_items.quantity`). After the prefix of a map
(`attributes.`), the rest of the column name is one key, dots included.
"""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Final

import msgspec
from msgspec import inspect

from regulars.consent.wire import OptInIn, OptOutIn
from regulars.imports.model import ImportKind
from regulars.kit.body_reader import plain_types
from regulars.profiles.wire import ProfileIn
from regulars.sales.decode import SaleIn
from regulars.stores.model import StoreIn

LINES_PREFIX: Final = "line_items."
REQUESTS: Final[dict[ImportKind, tuple[type[msgspec.Struct], ...]]] = {
    ImportKind.SALES: (SaleIn,),
    ImportKind.PROFILES: (ProfileIn,),
    ImportKind.STORES: (StoreIn,),
    # A row with `consented_at` is a consent, one with `unsubscribed_at` a withdrawal.
    ImportKind.CONSENTS: (OptInIn, OptOutIn),
}
SUGGESTED_MAX: Final = 1
# How similar a column must be to be suggested for an unknown one, from 0 to 1, as `difflib` computes it.
SIMILARITY_MIN: Final = 0.55


class CellKind(Enum):
    """How the text of a cell is converted to JSON."""

    TEXT = "text"
    ID = "id"
    NUMBER = "number"
    CENTS = "amount"
    TIMESTAMP = "time"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class ColumnSet:
    """The columns that one kind of import allows; `cells` has the kind of the cells of each."""

    cells: dict[str, CellKind]
    # The prefixes of maps, such as `attributes.`.
    map_prefixes: tuple[str, ...]

    def map_prefix(self, column: str) -> str | None:
        return next((prefix for prefix in self.map_prefixes if column.startswith(prefix) and column != prefix), None)

    def has(self, column: str) -> bool:
        return column in self.cells or self.map_prefix(column) is not None

    def nearest(self, column: str) -> str | None:
        """Return the known column with the most similar name, or with the most similar last part of its name."""
        normalized = column.strip().lower().replace(" ", "_").replace("-", "_")
        names = {name: name for name in self.cells} | {name.rpartition(".")[2]: name for name in reversed(self.cells)}
        matches = difflib.get_close_matches(normalized, names, n=SUGGESTED_MAX, cutoff=SIMILARITY_MIN)
        return names[matches[0]] if matches else None


@cache
def columns_of(kind: ImportKind) -> ColumnSet:
    cells: dict[str, CellKind] = {}
    map_prefixes: list[str] = []
    for request in REQUESTS[kind]:
        for path, field in _list_fields(inspect.type_info(request), ""):
            kinds = list(plain_types(field.type))
            if any(isinstance(each, inspect.DictType) for each in kinds):
                map_prefixes.append(f"{path}.")
                continue
            cells.setdefault(path, _kind_of(path, kinds))
    return ColumnSet(cells, tuple(map_prefixes))


def _list_fields(info: inspect.Type, prefix: str) -> Iterator[tuple[str, inspect.Field]]:
    """Yield the fields that a cell can set, with their paths, also those of inner objects and of list items."""
    if not isinstance(info, inspect.StructType):
        return
    for field in info.fields:
        path = f"{prefix}{field.encode_name}"
        inner = [each for each in plain_types(field.type) if isinstance(each, inspect.StructType)]
        if inner:
            yield from _list_fields(inner[0], f"{path}.")
        else:
            yield path, field


def _kind_of(path: str, kinds: Iterable[inspect.Type]) -> CellKind:
    name = path.rpartition(".")[2]
    if name.endswith("_cents"):
        return CellKind.CENTS
    if name.endswith("_at"):
        return CellKind.TIMESTAMP
    if name.endswith("_id") or name == "phone_number":
        return CellKind.ID
    if name == "quantity":
        return CellKind.NUMBER
    if any(isinstance(each, inspect.RawType | inspect.AnyType) for each in kinds):
        return CellKind.JSON
    return CellKind.TEXT
