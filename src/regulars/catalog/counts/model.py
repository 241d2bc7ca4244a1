"""The data of a count of how many stored values fit a type, and its result for each key (`Tally`); no I/O."""

from collections.abc import Collection, Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.catalog.model import AttributeType, Catalog, has_leading_zeros, interpret

SAMPLES_MAX: Final = 12
COMMON_MAX: Final = 200
SAMPLE_CHARACTERS_MAX: Final = 200
# Of each key a count of all keys stores this many of the most frequent values; while it reads, a value that was dropped
# begins at zero again.
FREQUENT_MAX: Final = 500
FREQUENT_CHARACTERS_MAX: Final = 100
# Keys whose values a count of all keys stores, the first in alphabetical order.
FREQUENT_KEYS_MAX: Final = 1_000
# A value that fewer customers have is never shown, because it could identify one of them.
CUSTOMERS_MIN: Final = 5
# Some more, so that an erasure seldom hides a value.
BUYERS_MAX: Final = 8
# After so many failed attempts in a row pages say that a count has failed; it is still tried again every hour.
ATTEMPTS_MAX: Final = 4
# Smaller than every id of a row: a count begins after this id.
START: Final = UUID(int=0)


class JobState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class CountJob(msgspec.Struct, frozen=True, kw_only=True):
    """A count of the stored values: of every key by its type, or (a preview) of one key by a proposed type."""

    id: UUID
    catalog: Catalog
    key: str | None = None
    type: AttributeType | None = None
    allowed_values: tuple[str, ...] = ()
    # The id of the last row that was counted.
    walked_to: UUID = START
    rows_read: int = 0
    # How many rows there are about, if they were counted before.
    rows_total: int | None = None
    created_at: datetime
    finished_at: datetime | None = None
    attempts: int = 0
    due_at: datetime | None

    @property
    def state(self) -> JobState:
        if self.finished_at is not None:
            return JobState.DONE
        return JobState.FAILED if self.due_at is None or self.attempts >= ATTEMPTS_MAX else JobState.RUNNING


class ValueCount(NamedTuple):
    """A value of a key, and how many times it is stored. Of a product property also the ends of the ids of some
    customers who bought a product with it."""

    key: str
    value: str
    times: int
    buyers: tuple[str, ...] | None = None


class ValueBatch(NamedTuple):
    """A batch of rows: how many there are, the id of the last one, and the values in them."""

    rows: int
    last: UUID | None
    values: list[ValueCount]
    # Whether there are rows that are too young to be read.
    has_younger: bool = False


class DeclaredType(NamedTuple):
    """The type of a key, and for an enum its values."""

    type: AttributeType
    allowed_values: tuple[str, ...] = ()


class Tally(msgspec.Struct):
    """The counts of the values of one key; a value is readable if it fits the type."""

    readable: int = 0
    unreadable: int = 0
    leading_zeros: int = 0
    # Some of the unreadable values, and the first distinct values (`common`), each with its number of occurrences. A
    # count of all keys has no samples, and the most frequent values as `common`.
    samples: dict[str, int] = {}
    common: dict[str, int] = {}
    # For each frequent value of a product property, the ends of the ids of some customers who bought it.
    buyers: dict[str, list[str]] = {}

    @property
    def values(self) -> int:
        return self.readable + self.unreadable

    @property
    def has_all_values(self) -> bool:
        """Whether `common` has every distinct value."""
        return sum(self.common.values()) == self.values

    def add(self, declared: DeclaredType, value: str, times: int) -> bool:
        """Count a value; return whether it fits the type."""
        is_readable = interpret(declared.type, value, allowed_values=declared.allowed_values) is not None
        if is_readable:
            self.readable += times
        else:
            self.unreadable += times
        if has_leading_zeros(value):
            self.leading_zeros += times
        return is_readable

    def add_samples(self, value: str, times: int, *, is_readable: bool) -> None:
        """Store the value for a preview."""
        sample = value[:SAMPLE_CHARACTERS_MAX]
        _add_sample(self.common, sample, times, samples_max=COMMON_MAX)
        if not is_readable:
            _add_sample(self.samples, sample, times, samples_max=SAMPLES_MAX)

    def add_frequent(self, value: str, times: int, buyers: tuple[str, ...] | None) -> None:
        """Store the value for suggestions."""
        if not value.strip() or len(value) > FREQUENT_CHARACTERS_MAX:
            return
        self.common[value] = self.common.get(value, 0) + times
        if buyers is not None:
            self.buyers[value] = list(dict.fromkeys((*self.buyers.get(value, ()), *buyers)))[:BUYERS_MAX]

    def drop_rare(self) -> None:
        """Drop all but the most frequent values."""
        if len(self.common) > FREQUENT_MAX:
            frequent = sorted(self.common.items(), key=lambda found: -found[1])
            self.common = dict(frequent[:FREQUENT_MAX])
            self.buyers = {value: buyers for value, buyers in self.buyers.items() if value in self.common}

    def remove_customer(self, value: str) -> None:
        """Remove an erased customer from the number of those who have a value of an attribute."""
        if value in self.common:
            self.common[value] -= 1
            if self.common[value] < CUSTOMERS_MIN:
                del self.common[value]

    def remove_buyers(self, erased: Collection[str]) -> None:
        for value, buyers in self.buyers.items():
            self.buyers[value] = [buyer for buyer in buyers if buyer not in erased]

    def list_frequent(self) -> list[tuple[str, int]]:
        """The values that at least five customers have, each with its number of occurrences, most frequent first."""
        customers = {value: len(buyers) for value, buyers in self.buyers.items()} or self.common
        shown = [(value, times) for value, times in self.common.items() if customers.get(value, 0) >= CUSTOMERS_MIN]
        return sorted(shown, key=lambda found: (-found[1], found[0]))


def _add_sample(samples: dict[str, int], value: str, times: int, *, samples_max: int) -> None:
    if value in samples:
        samples[value] += times
    elif len(samples) < samples_max:
        samples[value] = times


def add_values(
    tallies: dict[str, Tally],
    values: Iterable[ValueCount],
    types: dict[str, DeclaredType],
    *,
    is_preview: bool,
    frequent_keys: Collection[str] = (),
) -> None:
    """Add the values of a batch to the tallies. A key without a declared type counts as text. A count of all keys
    stores only values of `frequent_keys`."""
    text = DeclaredType(AttributeType.TEXT)
    for key, value, times, buyers in values:
        if key not in tallies:
            tallies[key] = Tally()
        is_readable = tallies[key].add(types.get(key, text), value, times)
        if is_preview:
            tallies[key].add_samples(value, times, is_readable=is_readable)
        elif key in frequent_keys:
            tallies[key].add_frequent(value, times, buyers)
    for tally in tallies.values():
        tally.drop_rare()
