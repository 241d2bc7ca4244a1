"""A count of values and its tallies; pure."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import msgspec

from regulars.catalog.model import AttributeType, Catalog, interpret, looks_like_code
from regulars.kit.db import Tx

SAMPLES_MAX: Final = 12
COMMON_MAX: Final = 200
SAMPLE_CHARACTERS_MAX: Final = 200
START: Final = UUID(int=0)


class State(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """A walk over the stored values: of every key, or of one by the type that is proposed for it."""

    id: UUID
    catalog: Catalog
    key: str | None
    type: AttributeType | None
    allowed_values: tuple[str, ...]
    walked_to: UUID
    rows_read: int
    rows_total: int | None
    created_at: datetime
    finished_at: datetime | None
    attempts: int
    due_at: datetime | None

    @property
    def state(self) -> State:
        if self.finished_at is not None:
            return State.DONE
        return State.FAILED if self.due_at is None else State.RUNNING


class ValueCount(NamedTuple):
    """A value of a key, and how often it stands there."""

    key: str
    value: str
    times: int


class Stretch(NamedTuple):
    """What a bite found: how many rows it read, the last of them, and the values in them."""

    rows: int
    last: UUID | None
    values: list[ValueCount]


class Values(Protocol):
    """Where the values of a catalog are stored."""

    async def count_rows(self, tx: Tx, organization_id: UUID) -> int: ...

    async def read_stretch(
        self, tx: Tx, organization_id: UUID, *, after: UUID, rows_max: int, key: str | None
    ) -> Stretch:
        """The values of the rows that follow this one; of one key, or of all."""


class Reading(NamedTuple):
    """How the values of a key are to be read."""

    type: AttributeType
    allowed_values: frozenset[str] = frozenset()


class Tally(msgspec.Struct, kw_only=True):
    """The values of one key, counted."""

    readable: int = 0
    unreadable: int = 0
    leading_zeros: int = 0
    # Some values that cannot be read, and the first distinct ones of all, each with how often it was seen.
    samples: dict[str, int] = {}
    common: dict[str, int] = {}

    @property
    def values(self) -> int:
        return self.readable + self.unreadable

    @property
    def has_all_values(self) -> bool:
        """Whether every distinct value is among the common ones."""
        return sum(self.common.values()) == self.values

    def add(self, reading: Reading, value: str, times: int, *, keeps_values: bool) -> None:
        is_readable = interpret(reading.type, value, allowed_values=reading.allowed_values) is not None
        if is_readable:
            self.readable += times
        else:
            self.unreadable += times
        if looks_like_code(value):
            self.leading_zeros += times
        if keeps_values:
            shown = value[:SAMPLE_CHARACTERS_MAX]
            _note(self.common, shown, times, at_most=COMMON_MAX)
            if not is_readable:
                _note(self.samples, shown, times, at_most=SAMPLES_MAX)


def _note(kept: dict[str, int], value: str, times: int, *, at_most: int) -> None:
    if value in kept:
        kept[value] += times
    elif len(kept) < at_most:
        kept[value] = times


def tally(
    tallies: dict[str, Tally], values: Iterable[ValueCount], readings: dict[str, Reading], *, keeps_values: bool
) -> None:
    """Add what a bite found. A key that nobody declared yet is read as text, as a new one would be."""
    text = Reading(AttributeType.TEXT)
    for key, value, times in values:
        if key not in tallies:
            tallies[key] = Tally()
        tallies[key].add(readings.get(key, text), value, times, keeps_values=keeps_values)
