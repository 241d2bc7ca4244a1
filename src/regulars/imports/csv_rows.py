"""Convert the records of a table to the JSON objects of the API.

A column is a field name; a dot names a field of an inner object (`address.locality`, `attributes.loyalty_tier`). An
empty cell omits its field. A ticket with several lines takes one record per line, in sequence and with the same
`external_id`: the columns `line_items.…` have the line, and only the first record needs the other columns.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from regulars.imports.cells import NUMBER, FileFormat
from regulars.imports.columns import LINES_PREFIX, CellKind, ColumnSet, columns_of
from regulars.imports.model import ROW_BYTES_MAX, FileError, ImportKind, Row
from regulars.imports.sources import CsvReader
from regulars.kit.errors import ApiError, InvalidJson, PayloadTooLarge, invalid
from regulars.kit.json import encode

SHOWN_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Header:
    kind: ImportKind
    # Our names, in the order of the file; None for a column that is ignored.
    columns: tuple[str | None, ...]
    # The file's names of the ignored columns.
    left_out: tuple[str, ...]

    @classmethod
    def read(cls, kind: ImportKind, names: list[str], mapped: Mapping[str, str]) -> "Header":
        """Refuse unknown columns, because their values would be lost silently. Columns without a name are ignored:
        spreadsheets often add them at the end.
        """
        names = [name.strip() for name in names]
        while names and not names[-1]:
            names.pop()
        if not names:
            raise FileError("The file has no header.")
        known = columns_of(kind)
        columns = tuple(mapped.get(name, name) or None for name in names)
        _check(kind, known, names, columns, mapped)
        left_out = tuple(name or f"column {place}" for place, name in enumerate(names, 1) if not columns[place - 1])
        return cls(kind, columns, left_out)


def _check(
    kind: ImportKind, known: ColumnSet, names: list[str], columns: tuple[str | None, ...], mapped: Mapping[str, str]
) -> None:
    absent = [name for name in mapped if name not in names]
    if absent:
        raise FileError(f"The header has no column '{absent[0]}' to map; it has {_listed(names)}.")
    unknown = [(name, ours) for name, ours in zip(names, columns, strict=True) if ours and not known.has(ours)]
    if unknown:
        raise FileError(_advice(kind, known, unknown))
    used = [ours for ours in columns if ours]
    twice = next((ours for ours in used if used.count(ours) > 1), None)
    if twice:
        raise FileError(f"The header has the column '{twice}' twice.")


def _advice(kind: ImportKind, known: ColumnSet, unknown: list[tuple[str, str]]) -> str:
    near = [(name, ours, known.nearest(ours)) for name, ours in unknown]
    meant = [f'--map "{name}={found}"' for name, _, found in near if found]
    advice = f"perhaps you mean {' '.join(meant)}; " if meant else ""
    return (
        f"The header has columns that {kind.value} do not have: {_listed(repr(ours) for _, ours in unknown)}; {advice}"
        f'leave one out with --map "{unknown[0][0]}="; the columns are {_listed(known.cells)}'
        + "".join(f", {prefix}ANYTHING" for prefix in known.map_prefixes)
        + "."
    )


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:SHOWN_MAX]) + (f" and {len(every) - SHOWN_MAX} more" if len(every) > SHOWN_MAX else "")


@dataclass(frozen=True, slots=True)
class Cells:
    """A record: the fields of the object, and of one of its lines."""

    number: int
    fields: dict[str, Any]
    line: dict[str, Any]
    unreadable: ApiError | None = None

    def as_row(self) -> Row:
        return make_row(self.number, self.fields, self.unreadable)


def rows_of(header: Header, reader: CsvReader, spelling: FileFormat, *, lines_before: int) -> Iterator[Cells]:
    while True:
        number = reader.line_num + 1 + lines_before
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Cells(number, {}, {}, InvalidJson(f"The record cannot be read: {error}."))
            continue
        if any(record):
            yield _cells_of(header, record, spelling, number)


def _cells_of(header: Header, record: list[str], spelling: FileFormat, number: int) -> Cells:
    if any(record[len(header.columns) :]):
        return Cells(
            number, {"cells": record}, {}, InvalidJson("The record has more cells than the header has columns.")
        )
    known = columns_of(header.kind)
    fields: dict[str, Any] = {}
    line: dict[str, Any] = {}
    refusal: ApiError | None = None
    for column, cell in zip(header.columns, record, strict=False):
        if cell == "" or column is None:
            continue
        value = _value(known, column, cell, spelling)
        if isinstance(value, ApiError):
            refusal, value = refusal or value, cell
        is_line = column.startswith(LINES_PREFIX)
        _put(line if is_line else fields, _path(known, column, in_line=is_line), value)
    return Cells(number, fields, line, refusal)


def _value(known: ColumnSet, column: str, cell: str, spelling: FileFormat) -> Any:
    kind = known.cells.get(column, CellKind.TEXT)
    if kind is CellKind.MOMENT:
        return spelling.moment(cell, field=column)
    if kind is CellKind.DOCUMENT and _is_document(cell):
        return msgspec.Raw(cell.encode())
    if kind in {CellKind.CENTS, CellKind.NUMBER}:
        text = spelling.cents(cell, field=column) if kind is CellKind.CENTS else spelling.number(cell)
        if isinstance(text, ApiError):
            return text
        # The digits are passed on unchanged, because a float could change them. The API refuses a value that is not a
        # number.
        return msgspec.Raw(text.encode()) if NUMBER.fullmatch(text) else text
    return cell


def group_lines(records: Iterator[Cells]) -> Iterator[Row]:
    """Merge consecutive records with the same `external_id` into one ticket with several lines."""
    ticket: Cells | None = None
    lines: list[dict[str, Any]] = []
    for record in records:
        external_id = record.fields.get("external_id")
        if ticket is not None and external_id is not None and external_id == ticket.fields.get("external_id"):
            lines.append(record.line)
            ticket = _agreed(ticket, record)
            continue
        if ticket is not None:
            yield _ticket_row(ticket, lines)
        ticket, lines = record, [record.line] if record.line else []
    if ticket is not None:
        yield _ticket_row(ticket, lines)


def make_row(number: int, fields: dict[str, Any], unreadable: ApiError | None) -> Row:
    try:
        body = encode(fields)
    except UnicodeEncodeError:
        return Row(number, b"null", InvalidJson("The record has bytes that are not valid in the file's encoding."))
    return Row(number, body, too_large() if len(body) > ROW_BYTES_MAX else unreadable)


def too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"A row has at most {ROW_BYTES_MAX} bytes.")


def _agreed(ticket: Cells, record: Cells) -> Cells:
    refusal = ticket.unreadable or record.unreadable
    for name, value in record.fields.items():
        if ticket.fields.get(name) != value:
            refusal = refusal or invalid(
                name, "INCONSISTENT", f"Line {record.number} differs from the first line of the ticket."
            )
    return Cells(ticket.number, ticket.fields, ticket.line, refusal)


def _ticket_row(ticket: Cells, lines: list[dict[str, Any]]) -> Row:
    fields = {**ticket.fields, "line_items": lines} if lines else ticket.fields
    return make_row(ticket.number, fields, ticket.unreadable)


def _path(known: ColumnSet, column: str, *, in_line: bool) -> list[str]:
    free = known.map_prefix(column)
    names = column.split(".") if free is None else [*free[:-1].split("."), column.removeprefix(free)]
    return names[1:] if in_line else names


def _put(target: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        target = target.setdefault(name, {})
    target[names[-1]] = value


def _is_document(cell: str) -> bool:
    """Whether the cell is valid JSON; other cells stay text, which the API refuses in these fields."""
    try:
        msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
