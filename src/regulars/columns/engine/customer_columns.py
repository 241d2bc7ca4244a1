"""Decodes, updates and encodes the columns of customers. They are stored in blocks, each with a range of customers, and
in patches, which have the new states of changed customers and are not merged into the blocks yet."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from regulars.columns.engine.coded_values import CodedColumn
from regulars.columns.engine.encoding import (
    NONE,
    Array,
    Dictionary,
    decode,
    decode_coded,
    encode,
    encode_coded,
    encode_values,
)
from regulars.columns.model import BLOCK_CUSTOMERS, NEVER_ASKED, CustomerState

# The prefix of the name of an attribute column; the key of the attribute follows.
ATTRIBUTE_PREFIX: Final = "a:"
TEXTS: Final = "texts"
# The profile id, in two columns of 64-bit integers.
PROFILE: Final = ("profile_high", "profile_low")
# Instead of a time in seconds.
NO_TIME: Final = np.iinfo(np.int64).min

Number = int | bool | None


class NumericColumn(NamedTuple):
    """A numeric column: its type, the default of a customer without a value, and how to read it from a state."""

    dtype: Any
    default: Number
    read: Callable[[CustomerState], Number]


NUMERIC: Final[dict[str, NumericColumn]] = {
    "alive": NumericColumn(np.bool_, False, lambda state: state.is_alive),
    PROFILE[0]: NumericColumn(np.uint64, 0, lambda state: int.from_bytes(state.profile[:8])),
    PROFILE[1]: NumericColumn(np.uint64, 0, lambda state: int.from_bytes(state.profile[8:])),
    "created": NumericColumn(np.int64, NO_TIME, lambda state: state.created_s if state.is_alive else NO_TIME),
    "named": NumericColumn(np.bool_, False, lambda state: state.is_named),
    # The hash of the customer's own phone number; 0 without a number.
    "own": NumericColumn(np.uint64, 0, lambda state: state.own_hash),
    "consent": NumericColumn(np.uint8, NEVER_ASKED, lambda state: state.consent),
    # The time of the consent or withdrawal that decides the consent state.
    "since": NumericColumn(np.int64, NO_TIME, lambda state: NO_TIME if state.since_s is None else state.since_s),
}
# Dictionary-encoded columns: how to read the value from a state. `source` and `store` are those of the consent.
CODED: Final[dict[str, Callable[[CustomerState], str | bytes | None]]] = {
    "country": lambda state: state.country,
    "source": lambda state: state.source,
    "store": lambda state: state.store,
}


class LastTexts:
    """When each customer last got a text of each sender, which is a journey or a campaign. A row has a customer number,
    a code of `senders`, which is the dictionary of the senders' ids, and a time."""

    def __init__(self) -> None:
        self.senders = Dictionary()
        self.customer = np.zeros(0, np.int64)
        self.sender = np.zeros(0, np.int32)
        self.at_s = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        return self.customer.nbytes + self.sender.nbytes + self.at_s.nbytes

    def add(self, customer: Array, sender: Array, at_s: Array) -> None:
        self.customer = np.concatenate((self.customer, customer.astype(np.int64)))
        self.sender = np.concatenate((self.sender, sender.astype(np.int32)))
        self.at_s = np.concatenate((self.at_s, at_s.astype(np.int64)))

    def are_from(self, sender_ids: Collection[UUID]) -> Array:
        """A mask of the rows of these senders."""
        codes = [code for it in sender_ids if (code := self.senders.find(it.bytes)) >= 0]
        mask: Array = self.sender == codes[0] if len(codes) == 1 else np.isin(self.sender, codes)
        return mask

    def apply_states(self, states: Sequence[CustomerState], first: int) -> None:
        """Replace the rows of the customers in `states`; customer `first` has the index 0."""
        changed = numbers_of(states) - first
        unchanged = ~np.isin(self.customer, changed)
        self.customer, self.sender, self.at_s = self.customer[unchanged], self.sender[unchanged], self.at_s[unchanged]
        rows = [
            (state.number - first, self.senders.code(sender_id), at_s)
            for state in states
            for sender_id, at_s in state.texts
        ]
        if rows:
            customer, sender, at_s = zip(*rows, strict=True)
            self.add(np.array(customer), np.array(sender), np.array(at_s))


Column = Array | CodedColumn | LastTexts


def new_column(name: str, size: int) -> Column:
    """A column of `size` customers without values."""
    if name == TEXTS:
        return LastTexts()
    if name in NUMERIC:
        return np.full(size, NUMERIC[name].default, NUMERIC[name].dtype)
    return CodedColumn(Dictionary(), np.full(size, NONE, np.int32))


def extend(name: str, column: Column, size: int) -> Column:
    """Extend the column to `size` customers."""
    if isinstance(column, LastTexts):
        return column
    if isinstance(column, CodedColumn):
        if column.codes.size < size:
            column.codes = np.concatenate((column.codes, np.full(size - column.codes.size, NONE, np.int32)))
        return column
    if column.size >= size:
        return column
    numeric = NUMERIC[name]
    return np.concatenate((column, np.full(size - column.size, numeric.default, numeric.dtype)))


def write_block(column: Column, block: int, content: bytes) -> None:
    """Write the values of a block into the column."""
    first = block * BLOCK_CUSTOMERS
    if isinstance(column, LastTexts):
        sender_ids, packed = decode_coded(content)
        customer, sender, at_s = packed.reshape(3, -1)
        codes = column.senders.map(sender_ids)
        column.add(customer + first, codes[sender], at_s)
        return
    if isinstance(column, CodedColumn):
        values, codes = decode_coded(content)
        column.codes[first : first + codes.size] = column.dictionary.map(values)[codes]
        return
    numbers = decode(content)
    column[first : first + numbers.size] = numbers.astype(column.dtype)


def numbers_of(states: Sequence[CustomerState]) -> Array:
    """The customer numbers, which are indexes in the columns."""
    return np.fromiter((state.number for state in states), np.int64, len(states))


def apply_states(name: str, column: Column, states: Sequence[CustomerState], *, first: int = 0) -> None:
    """Write the new state of each customer into the column, which begins with customer `first`."""
    if not states:
        return
    if isinstance(column, LastTexts):
        column.apply_states(states, first)
        return
    numbers = numbers_of(states) - first
    if isinstance(column, CodedColumn):
        code = column.dictionary.code
        column.codes[numbers] = np.fromiter((code(value) for value in values_of(name, states)), np.int32, len(states))
        return
    read = NUMERIC[name].read
    column[numbers] = np.array([read(state) for state in states], column.dtype)


def values_of(name: str, states: Iterable[CustomerState]) -> Iterable[str | bytes | None]:
    if name.startswith(ATTRIBUTE_PREFIX):
        key = name.removeprefix(ATTRIBUTE_PREFIX)
        return (state.attributes.get(key) for state in states)
    return map(CODED[name], states)


def last_state_of_each(patches: Iterable[Sequence[CustomerState]]) -> list[CustomerState]:
    """The last state of each customer, from patches in the order in which they were written."""
    last: dict[int, CustomerState] = {}
    for states in patches:
        for state in states:
            last[state.number] = state
    return list(last.values())


def merge_into_block(
    block: int, parts: Mapping[str, bytes], states: Sequence[CustomerState]
) -> tuple[int, dict[str, bytes]]:
    """Merge the new states of customers into a block, whose columns are in `parts`; return its size in customers and
    its encoded columns."""
    first = block * BLOCK_CUSTOMERS
    keys = {ATTRIBUTE_PREFIX + key for state in states for key in state.attributes}
    names = {*NUMERIC, *CODED, TEXTS, *keys, *(name for name in parts if name.startswith(ATTRIBUTE_PREFIX))}
    old_size = decode(parts["alive"]).size if "alive" in parts else 0
    size = max([old_size, *(state.number - first + 1 for state in states)])
    merged: dict[str, bytes] = {}
    for name in names:
        column = new_column(name, size)
        if name in parts:
            write_block(column, 0, parts[name])
        apply_states(name, column, states, first=first)
        content = _encode_column(column)
        if content is not None:
            merged[name] = content
    return size, merged


def _encode_column(column: Column) -> bytes | None:
    """Encode the column; None for an attribute that no customer has any more."""
    if isinstance(column, LastTexts):
        if not column.customer.size:
            return None
        rows = np.concatenate((column.customer, column.sender.astype(np.int64), column.at_s))
        return encode_values(column.senders.values, rows)
    if isinstance(column, CodedColumn):
        return encode_coded(column.dictionary.values, column.codes) if (column.codes >= 0).any() else None
    if column.dtype == np.uint64:
        return encode(column)
    return encode(column.astype(np.uint8) if column.dtype == np.bool_ else column)
