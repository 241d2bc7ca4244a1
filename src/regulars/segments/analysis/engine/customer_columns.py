"""Customers in memory, column by column: blocks, and over them the patches that are not folded yet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from regulars.segments.analysis.engine.coded_values import Values
from regulars.segments.analysis.engine.encoding import (
    NONE,
    Array,
    Dictionary,
    decode,
    decode_coded,
    encode,
    encode_coded,
    encode_kept,
)
from regulars.segments.columns.model import BLOCK_CUSTOMERS, NEVER_ASKED, CustomerState

# Of an attribute, its key follows.
ATTRIBUTE: Final = "a:"
TEXTS: Final = "texts"
# The id of a profile, in two numbers.
PROFILE: Final = ("profile_high", "profile_low")
NO_TIME: Final = np.iinfo(np.int64).min

Number = int | bool | None


class Plain:
    """A column of numbers."""

    def __init__(self, kind: Any, missing: Number, of: Callable[[CustomerState], Number]) -> None:
        self.kind = kind
        self.missing = missing
        self.of = of


# Every column that is no attribute, how it is kept and what a patch says of it.
PLAIN: Final[dict[str, Plain]] = {
    "alive": Plain(np.bool_, False, lambda state: state.is_alive),
    PROFILE[0]: Plain(np.uint64, 0, lambda state: int.from_bytes(state.profile[:8])),
    PROFILE[1]: Plain(np.uint64, 0, lambda state: int.from_bytes(state.profile[8:])),
    "created": Plain(np.int64, NO_TIME, lambda state: state.created_s if state.is_alive else NO_TIME),
    "named": Plain(np.bool_, False, lambda state: state.is_named),
    "own": Plain(np.uint64, 0, lambda state: state.own_hash),
    "consent": Plain(np.uint8, NEVER_ASKED, lambda state: state.consent),
    "since": Plain(np.int64, NO_TIME, lambda state: NO_TIME if state.since_s is None else state.since_s),
}
CODED: Final[dict[str, Callable[[CustomerState], str | bytes | None]]] = {
    "country": lambda state: state.country,
    "source": lambda state: state.source,
    "store": lambda state: state.store,
}


class LastTexts:
    """When each customer last got a text of each journey."""

    def __init__(self) -> None:
        self.journeys = Dictionary()
        self.customer = np.zeros(0, np.int64)
        self.journey = np.zeros(0, np.int32)
        self.at_s = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        return self.customer.nbytes + self.journey.nbytes + self.at_s.nbytes

    def add(self, customer: Array, journey: Array, at_s: Array) -> None:
        self.customer = np.concatenate((self.customer, customer.astype(np.int64)))
        self.journey = np.concatenate((self.journey, journey.astype(np.int32)))
        self.at_s = np.concatenate((self.at_s, at_s.astype(np.int64)))

    def apply(self, states: Sequence[CustomerState], first: int) -> None:
        changed = numbers_of(states) - first
        kept = ~np.isin(self.customer, changed)
        self.customer, self.journey, self.at_s = self.customer[kept], self.journey[kept], self.at_s[kept]
        rows = [
            (state.number - first, self.journeys.code(journey), at_s)
            for state in states
            for journey, at_s in state.texts
        ]
        if rows:
            customer, journey, at_s = zip(*rows, strict=True)
            self.add(np.array(customer), np.array(journey), np.array(at_s))


Column = Array | Values | LastTexts


def empty(name: str, size: int) -> Column:
    if name == TEXTS:
        return LastTexts()
    if name in PLAIN:
        return np.full(size, PLAIN[name].missing, PLAIN[name].kind)
    return Values(Dictionary(), np.full(size, NONE, np.int32))


def grown(name: str, column: Column, size: int) -> Column:
    """The same column with room for more customers."""
    if isinstance(column, LastTexts):
        return column
    if isinstance(column, Values):
        if column.codes.size < size:
            column.codes = np.concatenate((column.codes, np.full(size - column.codes.size, NONE, np.int32)))
        return column
    if column.size >= size:
        return column
    plain = PLAIN[name]
    return np.concatenate((column, np.full(size - column.size, plain.missing, plain.kind)))


def place_block(column: Column, block: int, content: bytes) -> None:
    """Write what a block has of a column into its place."""
    first = block * BLOCK_CUSTOMERS
    if isinstance(column, LastTexts):
        journeys, packed = decode_coded(content)
        customer, journey, at_s = packed.reshape(3, -1)
        codes = column.journeys.map(journeys)
        column.add(customer + first, codes[journey], at_s)
        return
    if isinstance(column, Values):
        values, codes = decode_coded(content)
        column.codes[first : first + codes.size] = column.dictionary.map(values)[codes]
        return
    values_of = decode(content)
    column[first : first + values_of.size] = values_of.astype(column.dtype)


def numbers_of(states: Sequence[CustomerState]) -> Array:
    return np.fromiter((state.number for state in states), np.int64, len(states))


def apply(name: str, column: Column, states: Sequence[CustomerState], *, first: int = 0) -> None:
    """Write what patches say, the last of each customer; the column begins with `first` and has room for all."""
    if not states:
        return
    if isinstance(column, LastTexts):
        column.apply(states, first)
        return
    numbers = numbers_of(states) - first
    if isinstance(column, Values):
        code = column.dictionary.code
        column.codes[numbers] = np.fromiter((code(value) for value in values_of(name, states)), np.int32, len(states))
        return
    of = PLAIN[name].of
    column[numbers] = np.array([of(state) for state in states], column.dtype)


def values_of(name: str, states: Iterable[CustomerState]) -> Iterable[str | bytes | None]:
    if name.startswith(ATTRIBUTE):
        key = name.removeprefix(ATTRIBUTE)
        return (state.attributes.get(key) for state in states)
    return map(CODED[name], states)


def last_of_each(patches: Iterable[Sequence[CustomerState]]) -> list[CustomerState]:
    """Of patches in their order, what was said last of each customer."""
    last: dict[int, CustomerState] = {}
    for states in patches:
        for state in states:
            last[state.number] = state
    return list(last.values())


def fold(block: int, parts: Mapping[str, bytes], states: Sequence[CustomerState]) -> tuple[int, dict[str, bytes]]:
    """A block with patches in it: how many customers it has room for, and its parts."""
    first = block * BLOCK_CUSTOMERS
    keys = {ATTRIBUTE + key for state in states for key in state.attributes}
    names = {*PLAIN, *CODED, TEXTS, *keys, *(name for name in parts if name.startswith(ATTRIBUTE))}
    known = decode(parts["alive"]).size if "alive" in parts else 0
    size = max([known, *(state.number - first + 1 for state in states)])
    folded: dict[str, bytes] = {}
    for name in names:
        column = empty(name, size)
        if name in parts:
            place_block(column, 0, parts[name])
        apply(name, column, states, first=first)
        content = _encoded(column)
        if content is not None:
            folded[name] = content
    return size, folded


def _encoded(column: Column) -> bytes | None:
    """None for an attribute that nobody has any more."""
    if isinstance(column, LastTexts):
        if not column.customer.size:
            return None
        rows = np.concatenate((column.customer, column.journey.astype(np.int64), column.at_s))
        return encode_kept(column.journeys.values, rows)
    if isinstance(column, Values):
        return encode_coded(column.dictionary.values, column.codes) if (column.codes >= 0).any() else None
    if column.dtype == np.uint64:
        return encode(column)
    return encode(column.astype(np.uint8) if column.dtype == np.bool_ else column)
