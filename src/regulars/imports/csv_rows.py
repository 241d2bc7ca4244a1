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
from regulars.imports.model import ROW_BYTES_MAX, FileError, FileRow, ImportKind
from regulars.imports.sources import CsvReader
from regulars.kit.errors import ApiError, InvalidJson, PayloadTooLarge, invalid
from regulars.kit.json import encode

SHOWN_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Header:
    kind: ImportKind
    # The names of our fields, in the order of the file's columns; None for a column that is ignored.
    columns: tuple[str | None, ...]
    # The names of the ignored columns in the file.
    ignored_columns: tuple[str, ...]

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
        ignored_columns = tuple(
            name or f"column {number}" for number, name in enumerate(names, 1) if not columns[number - 1]
        )
        return cls(kind, columns, ignored_columns)


def _check(
    kind: ImportKind, known: ColumnSet, names: list[str], columns: tuple[str | None, ...], mapped: Mapping[str, str]
) -> None:
    absent = [name for name in mapped if name not in names]
    if absent:
        raise FileError(f"The header has no column '{absent[0]}' to map; it has {_listed(names)}.")
    unknown = [
        (name, our_name) for name, our_name in zip(names, columns, strict=True) if our_name and not known.has(our_name)
    ]
    if unknown:
        raise FileError(_advice(kind, known, unknown))
    used = [our_name for our_name in columns if our_name]
    twice = next((our_name for our_name in used if used.count(our_name) > 1), None)
    if twice:
        raise FileError(f"The header has the column '{twice}' twice.")


def _advice(kind: ImportKind, known: ColumnSet, unknown: list[tuple[str, str]]) -> str:
    near = [(name, our_name, known.nearest(our_name)) for name, our_name in unknown]
    meant = [f'--map "{name}={found}"' for name, _, found in near if found]
    advice = f"perhaps you mean {' '.join(meant)}; " if meant else ""
    columns = _listed(repr(column) for _, column in unknown)
    return (
        f"The header has columns that {kind.value} do not have: {columns}; {advice}"
        f'leave one out with --map "{unknown[0][0]}="; the columns are {_listed(known.cells)}'
        + "".join(f", {prefix}ANYTHING" for prefix in known.map_prefixes)
        + "."
    )


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:SHOWN_MAX]) + (f" and {len(every) - SHOWN_MAX} more" if len(every) > SHOWN_MAX else "")


@dataclass(frozen=True, slots=True)
class Cells:
    """A record of the file: the fields of the object, and those of one line of a ticket. `number` is its line in the
    file."""

    number: int
    fields: dict[str, Any]
    line: dict[str, Any]
    unreadable: ApiError | None = None

    def as_row(self) -> FileRow:
        return make_row(self.number, self.fields, self.unreadable)


def rows_of(header: Header, reader: CsvReader, file_format: FileFormat, *, lines_before: int) -> Iterator[Cells]:
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
            yield _cells_of(header, record, file_format, number)


def _cells_of(header: Header, record: list[str], file_format: FileFormat, number: int) -> Cells:
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
        value = _value(known, column, cell, file_format)
        if isinstance(value, ApiError):
            refusal, value = refusal or value, cell
        is_line = column.startswith(LINES_PREFIX)
        _put(line if is_line else fields, _path(known, column, in_line=is_line), value)
    return Cells(number, fields, line, refusal)


def _value(known: ColumnSet, column: str, cell: str, file_format: FileFormat) -> Any:
    kind = known.cells.get(column, CellKind.TEXT)
    if kind is CellKind.MOMENT:
        return file_format.moment(cell, field=column)
    if kind is CellKind.DOCUMENT and _is_document(cell):
        return msgspec.Raw(cell.encode())
    if kind in {CellKind.CENTS, CellKind.NUMBER}:
        text = file_format.cents(cell, field=column) if kind is CellKind.CENTS else file_format.number(cell)
        if isinstance(text, ApiError):
            return text
        # The digits are passed on unchanged, because a float could change them. The API refuses a value that is not a
        # number.
        return msgspec.Raw(text.encode()) if NUMBER.fullmatch(text) else text
    return cell


def group_lines(records: Iterator[Cells]) -> Iterator[FileRow]:
    """Merge consecutive records with the same `external_id` into one ticket with several lines."""
    ticket: Cells | None = None
    lines: list[dict[str, Any]] = []
    for record in records:
        external_id = record.fields.get("external_id")
        if ticket is not None and external_id is not None and external_id == ticket.fields.get("external_id"):
            lines.append(record.line)
            ticket = _check_agreement(ticket, record)
            continue
        if ticket is not None:
            yield _ticket_row(ticket, lines)
        ticket, lines = record, [record.line] if record.line else []
    if ticket is not None:
        yield _ticket_row(ticket, lines)


def make_row(number: int, fields: dict[str, Any], unreadable: ApiError | None) -> FileRow:
    try:
        body = encode(fields)
    except UnicodeEncodeError:
        return FileRow(number, b"null", InvalidJson("The record has bytes that are not valid in the file's encoding."))
    return FileRow(number, body, too_large() if len(body) > ROW_BYTES_MAX else unreadable)


def too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"A row has at most {ROW_BYTES_MAX} bytes.")


def _check_agreement(ticket: Cells, record: Cells) -> Cells:
    """The ticket, refused if a field of this further record differs from its first record."""
    refusal = ticket.unreadable or record.unreadable
    for name, value in record.fields.items():
        if ticket.fields.get(name) != value:
            refusal = refusal or invalid(
                name, "INCONSISTENT", f"Line {record.number} differs from the first line of the ticket."
            )
    return Cells(ticket.number, ticket.fields, ticket.line, refusal)


def _ticket_row(ticket: Cells, lines: list[dict[str, Any]]) -> FileRow:
    fields = {**ticket.fields, "line_items": lines} if lines else ticket.fields
    return make_row(ticket.number, fields, ticket.unreadable)


def _path(known: ColumnSet, column: str, *, in_line: bool) -> list[str]:
    prefix = known.map_prefix(column)
    names = column.split(".") if prefix is None else [*prefix[:-1].split("."), column.removeprefix(prefix)]
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
