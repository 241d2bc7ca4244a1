"""Convert the records (lines) of a CSV file or spreadsheet to the JSON objects of the API.

A column is a field name; a dot names a field of an inner object (`address.locality`, `attributes.loyalty_tier`). An
empty cell omits its field. A ticket with several line items takes one record per item, in sequence and with the same
`external_id`: the columns `line_items.…` have the item, and only the first record needs the other columns.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from regulars.imports.cells import NUMBER, FileFormat, read_id
from regulars.imports.columns import LINES_PREFIX, CellKind, ColumnSet, columns_of
from regulars.imports.model import ROW_BYTES_MAX, FileError, FileRow, ImportKind
from regulars.imports.sources import CsvReader
from regulars.kit.errors import ApiError, InvalidJson, PayloadTooLarge, invalid
from regulars.kit.json import encode

# The number of column names that an error message lists.
NAMES_LISTED_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Header:
    kind: ImportKind
    # The fields of the API, in the order of the file's columns; None for an ignored column.
    columns: tuple[str | None, ...]
    # The names of the ignored columns in the file.
    ignored_columns: tuple[str, ...]

    @classmethod
    def read(cls, kind: ImportKind, names: list[str], mapping: Mapping[str, str]) -> "Header":
        """Map the column names of the file to fields. Unknown columns are refused, because their values would be lost
        silently. Columns without a name, which spreadsheets often add at the end, are ignored.
        """
        names = [name.strip() for name in names]
        while names and not names[-1]:
            names.pop()
        if not names:
            raise FileError("The file has no header.")
        allowed = columns_of(kind)
        columns = tuple(mapping.get(name, name) or None for name in names)
        _check_columns(kind, allowed, names, columns, mapping)
        ignored_columns = tuple(
            name or f"column {number}" for number, name in enumerate(names, 1) if not columns[number - 1]
        )
        return cls(kind, columns, ignored_columns)


def _check_columns(
    kind: ImportKind, allowed: ColumnSet, names: list[str], columns: tuple[str | None, ...], mapping: Mapping[str, str]
) -> None:
    missing = [name for name in mapping if name not in names]
    if missing:
        raise FileError(f"The header has no column '{missing[0]}' to map; it has {_join_names(names)}.")
    unknown = [(name, field) for name, field in zip(names, columns, strict=True) if field and not allowed.has(field)]
    if unknown:
        raise FileError(_describe_unknown(kind, allowed, unknown))
    used = [field for field in columns if field]
    duplicate = next((field for field in used if used.count(field) > 1), None)
    if duplicate:
        raise FileError(f"The header has the column '{duplicate}' twice.")


def _describe_unknown(kind: ImportKind, allowed: ColumnSet, unknown: list[tuple[str, str]]) -> str:
    nearest = [(name, allowed.nearest(field)) for name, field in unknown]
    options = [f'--map "{name}={field}"' for name, field in nearest if field]
    advice = f"perhaps you mean {' '.join(options)}; " if options else ""
    columns = _join_names(repr(column) for _, column in unknown)
    return (
        f"The header has columns that {kind.value} do not have: {columns}; {advice}"
        f'leave one out with --map "{unknown[0][0]}="; the columns are {_join_names(allowed.cells)}'
        + "".join(f", {prefix}ANYTHING" for prefix in allowed.map_prefixes)
        + "."
    )


def _join_names(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - NAMES_LISTED_MAX
    return ", ".join(listed[:NAMES_LISTED_MAX]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A record of the file: its fields, those of one line item of a ticket (`item`), and the error if the record could
    not be read. `number` is the record's line in the file."""

    number: int
    fields: dict[str, Any]
    item: dict[str, Any]
    error: ApiError | None = None

    def as_row(self) -> FileRow:
        return make_row(self.number, self.fields, self.error)


def read_rows(header: Header, reader: CsvReader, file_format: FileFormat, *, lines_before: int) -> Iterator[FileRecord]:
    while True:
        number = reader.line_num + 1 + lines_before
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield FileRecord(number, {}, {}, InvalidJson(f"The record cannot be read: {error}."))
            continue
        if any(record):
            yield _read_record(header, record, file_format, number)


def _read_record(header: Header, record: list[str], file_format: FileFormat, number: int) -> FileRecord:
    if any(record[len(header.columns) :]):
        return FileRecord(
            number, {"cells": record}, {}, InvalidJson("The record has more cells than the header has columns.")
        )
    allowed = columns_of(header.kind)
    fields: dict[str, Any] = {}
    item: dict[str, Any] = {}
    refusal: ApiError | None = None
    for column, cell in zip(header.columns, record, strict=False):
        if cell == "" or column is None:
            continue
        value = _convert_cell(allowed, column, cell, file_format)
        if isinstance(value, ApiError):
            refusal, value = refusal or value, cell
        is_of_item = column.startswith(LINES_PREFIX)
        _set_field(item if is_of_item else fields, _field_path(allowed, column, in_item=is_of_item), value)
    return FileRecord(number, fields, item, refusal)


def _convert_cell(allowed: ColumnSet, column: str, cell: str, file_format: FileFormat) -> Any:
    kind = allowed.cells.get(column, CellKind.TEXT)
    if kind is CellKind.TIMESTAMP:
        return file_format.timestamp(cell, field=column)
    if kind is CellKind.ID:
        return read_id(cell, field=column)
    if kind is CellKind.JSON and _is_json(cell):
        return msgspec.Raw(cell.encode())
    if kind in {CellKind.CENTS, CellKind.NUMBER}:
        text = file_format.cents(cell, field=column) if kind is CellKind.CENTS else file_format.number(cell)
        if isinstance(text, ApiError):
            return text
        # Raw keeps the digits, which a float could change. A text that is not a number is refused later, as by the API.
        return msgspec.Raw(text.encode()) if NUMBER.fullmatch(text) else text
    return cell


def group_tickets(records: Iterator[FileRecord]) -> Iterator[FileRow]:
    """Merge consecutive records with the same `external_id` into one ticket with several line items."""
    ticket: FileRecord | None = None
    items: list[dict[str, Any]] = []
    for record in records:
        external_id = record.fields.get("external_id")
        if ticket is not None and external_id is not None and external_id == ticket.fields.get("external_id"):
            items.append(record.item)
            ticket = _check_agreement(ticket, record)
            continue
        if ticket is not None:
            yield _make_ticket(ticket, items)
        ticket, items = record, [record.item] if record.item else []
    if ticket is not None:
        yield _make_ticket(ticket, items)


def make_row(number: int, fields: dict[str, Any], error: ApiError | None) -> FileRow:
    try:
        body = encode(fields)
    except UnicodeEncodeError:
        return FileRow(number, b"null", InvalidJson("The record has bytes that are not valid in the file's encoding."))
    return FileRow(number, body, too_large() if len(body) > ROW_BYTES_MAX else error)


def too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"A row has at most {ROW_BYTES_MAX} bytes.")


def _check_agreement(ticket: FileRecord, record: FileRecord) -> FileRecord:
    """Return the ticket, with an error if a field of this further record differs from the ticket's first record."""
    refusal = ticket.error or record.error
    for name, value in record.fields.items():
        if ticket.fields.get(name) != value:
            refusal = refusal or invalid(
                name, "INCONSISTENT", f"Line {record.number} differs from the first line of the ticket."
            )
    return FileRecord(ticket.number, ticket.fields, ticket.item, refusal)


def _make_ticket(ticket: FileRecord, items: list[dict[str, Any]]) -> FileRow:
    fields = {**ticket.fields, "line_items": items} if items else ticket.fields
    return make_row(ticket.number, fields, ticket.error)


def _field_path(allowed: ColumnSet, column: str, *, in_item: bool) -> list[str]:
    """Return the names of the nested fields, such as `address` and `locality`; `in_item`, without `line_items`."""
    prefix = allowed.map_prefix(column)
    names = column.split(".") if prefix is None else [*prefix[:-1].split("."), column.removeprefix(prefix)]
    return names[1:] if in_item else names


def _set_field(target: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        target = target.setdefault(name, {})
    target[names[-1]] = value


def _is_json(cell: str) -> bool:
    """Whether the cell is valid JSON. Other cells stay text, which these fields refuse."""
    try:
        msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
