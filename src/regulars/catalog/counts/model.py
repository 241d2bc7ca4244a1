"""The data of a count of how many stored values fit a type, and its result for each key (`Tally`); no I/O."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.catalog.model import AttributeType, Catalog, has_leading_zeros, interpret

SAMPLES_MAX: Final = 12
COMMON_MAX: Final = 200
SAMPLE_CHARACTERS_MAX: Final = 200
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
    rows_total: int | None = None
    created_at: datetime
    finished_at: datetime | None = None
    attempts: int = 0
    due_at: datetime | None

    @property
    def state(self) -> JobState:
        if self.finished_at is not None:
            return JobState.DONE
        return JobState.FAILED if self.due_at is None else JobState.RUNNING


class ValueCount(NamedTuple):
    """A value of a key, and how many times it is stored."""

    key: str
    value: str
    times: int


class ValueBatch(NamedTuple):
    """A batch of rows: how many there are, the id of the last one, and the values in them."""

    rows: int
    last: UUID | None
    values: list[ValueCount]


class DeclaredType(NamedTuple):
    """The type of a key, and for an enum its values."""

    type: AttributeType
    allowed_values: tuple[str, ...] = ()


class Tally(msgspec.Struct):
    """The counts of the values of one key; a value is readable if it fits the type."""

    readable: int = 0
    unreadable: int = 0
    leading_zeros: int = 0
    # Some of the unreadable values, and the first distinct values (`common`), each with its number of occurrences.
    samples: dict[str, int] = {}
    common: dict[str, int] = {}

    @property
    def values(self) -> int:
        return self.readable + self.unreadable

    @property
    def has_all_values(self) -> bool:
        """Whether `common` has every distinct value."""
        return sum(self.common.values()) == self.values

    def add(self, declared: DeclaredType, value: str, times: int, *, stores_values: bool) -> None:
        is_readable = interpret(declared.type, value, allowed_values=declared.allowed_values) is not None
        if is_readable:
            self.readable += times
        else:
            self.unreadable += times
        if has_leading_zeros(value):
            self.leading_zeros += times
        if stores_values:
            sample = value[:SAMPLE_CHARACTERS_MAX]
            _add_sample(self.common, sample, times, samples_max=COMMON_MAX)
            if not is_readable:
                _add_sample(self.samples, sample, times, samples_max=SAMPLES_MAX)


def _add_sample(samples: dict[str, int], value: str, times: int, *, samples_max: int) -> None:
    if value in samples:
        samples[value] += times
    elif len(samples) < samples_max:
        samples[value] = times


def add_values(
    tallies: dict[str, Tally], values: Iterable[ValueCount], types: dict[str, DeclaredType], *, stores_values: bool
) -> None:
    """Add the values of a batch to the tallies. A key without a declared type counts as text."""
    text = DeclaredType(AttributeType.TEXT)
    for key, value, times in values:
        if key not in tallies:
            tallies[key] = Tally()
        tallies[key].add(types.get(key, text), value, times, stores_values=stores_values)
