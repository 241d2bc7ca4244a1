"""Rows of saved segments, and a segment with one of its versions."""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple
from uuid import UUID

from regulars.conditions.check import Fault
from regulars.kit.ids import SEGMENT
from regulars.segments.definition import Definition


class SegmentRow(NamedTuple):
    id: UUID
    name: str
    version: int
    created_at: datetime
    updated_at: datetime


class SegmentVersionRow(NamedTuple):
    version: int
    definition: str
    created_at: datetime
    created_by: str | None
    # The number of members when the version was first counted.
    total: int | None = None


class UseRow(NamedTuple):
    """A use of a segment: kind (such as `journey`) and id of the object that uses it."""

    segment_id: UUID
    kind: str
    id: UUID


class SizeRow(NamedTuple):
    day: date
    version: int
    total: int
    may_be_texted: int
    counted_at: datetime


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment with one of its versions and its current faults; a segment with a fault has no members."""

    row: SegmentRow
    version: SegmentVersionRow
    definition: Definition
    faults: list[Fault] = field(default_factory=list)
    # Those of the faults that stand for stored parts which are not valid; `definition` is without these parts.
    damage: tuple[Fault, ...] = ()

    @property
    def id(self) -> str:
        return SEGMENT.encode(self.row.id)
