"""The columns of a list, declared once for its page, its file and its command.

A column stands in all three unless `places` says otherwise. A user who may not see personal data gets the values of a
column masked, unless the column is declared `HARMLESS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Flag, auto
from typing import Any, Final, Generic, TypeVar

import msgspec

from regulars.kit.clock import format_timestamp

HIDDEN: Final = "•••"
# Of a column whose values identify no person: ids of ours, states, times, amounts.
HARMLESS: Final = True

Row = TypeVar("Row")


class Place(Flag):
    PAGE = auto()
    FILE = auto()
    # What a command prints as JSON.
    COMMAND = auto()
    DATA = FILE | COMMAND
    ALL = PAGE | FILE | COMMAND


@dataclass(frozen=True, slots=True)
class PartlyMasked:
    """A value of which users who may not see personal data get a part, such as the last digits of a number."""

    full: str | None
    mask: Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Head:
    """A heading on a page. The classes of the cells say below which width they are hidden; `at` is their place in the
    row. The template draws them, unless they show only the value."""

    label: str
    classes: str = ""
    at: int = 0
    is_plain: bool = False

    @property
    def head_classes(self) -> str:
        return " ".join(name for name in self.classes.split() if name.startswith("drop-") or name == "is-num")


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column that a page shows without a heading of its own stands in the cell of another one."""

    name: str
    value: Callable[[Row], object]
    is_harmless: bool = False
    head: Head | None = None
    places: Place = field(default=Place.ALL, kw_only=True)
    # Its name in JSON, if the command has another one.
    json_name: str = field(default="", kw_only=True)

    def read(self, row: Row, *, sees_personal: bool) -> object:
        """Return the value, masked if necessary."""
        value = self.value(row)
        if isinstance(value, PartlyMasked):
            return value.full if sees_personal or not value.full else value.mask(value.full)
        is_shown = sees_personal or self.is_harmless or value is None or value == ""
        return value if is_shown else HIDDEN


class Columns(Generic[Row]):
    """The columns of a list, in the order of its file."""

    def __init__(self, *columns: Column[Row]) -> None:
        self.columns = columns
        # Those with a heading on the page, in the order of its rows.
        self.heads = sorted([(column.head, column) for column in columns if column.head], key=lambda pair: pair[0].at)
        self._in = {place: [column for column in columns if place in column.places] for place in Place}

    def header(self, place: Place = Place.FILE) -> list[str]:
        return [column.name for column in self._in[place]]

    def cells(self, row: Row, *, sees_personal: bool, place: Place = Place.FILE) -> list[str]:
        """Return the cells of the row in a file."""
        cells = []
        for column in self._in[place]:
            value = column.value(row) if column.is_harmless else column.read(row, sees_personal=sees_personal)
            cells.append(value if type(value) is str else _as_text(value))
        return cells

    def as_data(self, row: Row) -> dict[str, Any]:
        """Return the row as a command prints it, for the operator at the server, who sees personal data."""
        in_command = self._in[Place.COMMAND]
        return {column.json_name or column.name: column.read(row, sees_personal=True) for column in in_command}


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return format_timestamp(value)
    return str(value) if isinstance(value, int) else msgspec.json.encode(value).decode()
