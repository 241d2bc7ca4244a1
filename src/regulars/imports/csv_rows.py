"""CSV records as the JSON objects the API takes.

A column is a field name; a dot leads into an object (`address.locality`, `attributes.loyalty_tier`). An empty cell
leaves its field out. A ticket of several lines stands in as many records, one below the other with the same
`external_id`; its columns `line_items.…` tell each line, and its other columns may stand in the first record only.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from regulars.imports.model import ROW_BYTES_MAX, Kind, Row
from regulars.kit.errors import ApiError, InvalidJson, PayloadTooLarge, invalid
from regulars.kit.json import encode

LINES_PREFIX: Final = "line_items."
# Whatever follows these is one key, dots included.
FREE_PREFIXES: Final = ("attributes.", "line_items.product.properties.")
_ADDRESS: Final = (
    "address_line1",
    "postal_code",
    "locality",
    "country_code",
    "address_line2",
    "administrative_area1",
    "administrative_area2",
)
_PROOF: Final = ("terms_url", "terms_version", "source_text")
_LINE_TEXTS: Final = ("external_id", "unit", "product.external_id", "product.name")
_LINE_NUMBERS: Final = ("quantity", "unit_price_cents", "total_price_cents", "discount_cents", "tax_cents")
_NUMBERS: Final = frozenset(
    {
        "total_amount_cents",
        "total_discount_cents",
        "total_tax_cents",
        *(f"{LINES_PREFIX}{name}" for name in _LINE_NUMBERS),
    }
)
_DOCUMENTS: Final = frozenset({"payments", "loyalty", "metadata"})
COLUMNS: Final = {
    Kind.STORES: frozenset({"external_id", "name", *(f"address.{name}" for name in _ADDRESS)}),
    Kind.PROFILES: frozenset({"external_id", "phone_number", "first_name", "last_name"}),
    Kind.CONSENTS: frozenset(
        {
            "phone_number",
            "profile_id",
            "store_id",
            "consent_source",
            "consented_at",
            *(f"consent_proof.{name}" for name in _PROOF),
            "unsubscribed_at",
            "reason",
            "source",
        }
    ),
    Kind.SALES: frozenset(
        {
            "external_id",
            "type",
            "occurred_at",
            "store_id",
            "currency",
            "profile_id",
            "source",
            *_NUMBERS,
            *_DOCUMENTS,
            *(f"{LINES_PREFIX}{name}" for name in _LINE_TEXTS),
        }
    ),
}
_FREE_COLUMNS: Final = {Kind.PROFILES: "attributes.", Kind.SALES: "line_items.product.properties."}
# What JSON calls a number; everything else stays text and is refused by the rules of the API.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


class HeaderError(Exception):
    """The message is one sentence for the person who runs the import."""


class Reader(Protocol):
    """The part of a CSV reader that is used here."""

    @property
    def line_num(self) -> int: ...

    def __next__(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Header:
    columns: tuple[str, ...]

    @classmethod
    def read(cls, kind: Kind, names: list[str]) -> "Header":
        """A column that means nothing to us would be lost without a word, so it is refused."""
        columns = tuple(name.strip() for name in names)
        free = _FREE_COLUMNS.get(kind)
        unknown = [
            name
            for name in columns
            if name not in COLUMNS[kind] and not (free and name.startswith(free) and name != free)
        ]
        if unknown:
            raise HeaderError(f"The header has columns that {kind.value} do not have: {', '.join(map(repr, unknown))}.")
        if len(set(columns)) != len(columns):
            raise HeaderError("The header has a column twice.")
        if not columns:
            raise HeaderError("The file has no header.")
        return cls(columns)


@dataclass(frozen=True, slots=True)
class Cells:
    """A record: what it tells of the object itself, and of one line of it."""

    number: int
    fields: dict[str, Any]
    line: dict[str, Any]
    unreadable: ApiError | None = None

    def as_row(self) -> Row:
        return make_row(self.number, self.fields, self.unreadable)


def rows_of(header: Header, reader: Reader, *, lines_before: int) -> Iterator[Cells]:
    while True:
        number = reader.line_num + 1 + lines_before
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Cells(number, {}, {}, InvalidJson(f"The record cannot be read: {error}."))
            continue
        if not record:
            continue
        if len(record) > len(header.columns):
            surplus = InvalidJson("The record has more cells than the header has columns.")
            yield Cells(number, {"cells": record}, {}, surplus)
            continue
        fields: dict[str, Any] = {}
        line: dict[str, Any] = {}
        for column, cell in zip(header.columns, record, strict=False):
            if cell == "":
                continue
            if column.startswith(LINES_PREFIX):
                _put(line, column, cell, path=column.removeprefix(LINES_PREFIX))
            else:
                _put(fields, column, cell, path=column)
        yield Cells(number, fields, line)


def group_lines(records: Iterator[Cells]) -> Iterator[Row]:
    """Records of one `external_id` that follow one another are the lines of one ticket."""
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
        return Row(number, b"null", InvalidJson("The record is not valid UTF-8."))
    return Row(number, body, too_large() if len(body) > ROW_BYTES_MAX else unreadable)


def too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"A row has at most {ROW_BYTES_MAX} bytes.")


def _agreed(ticket: Cells, record: Cells) -> Cells:
    for name, value in record.fields.items():
        if ticket.fields.get(name) != value:
            refusal = invalid(name, "INCONSISTENT", f"Line {record.number} says something else than the first line.")
            return Cells(ticket.number, ticket.fields, ticket.line, ticket.unreadable or refusal)
    return ticket


def _ticket_row(ticket: Cells, lines: list[dict[str, Any]]) -> Row:
    fields = {**ticket.fields, "line_items": lines} if lines else ticket.fields
    return make_row(ticket.number, fields, ticket.unreadable)


def _put(target: dict[str, Any], column: str, cell: str, *, path: str) -> None:
    value: Any = cell
    if column in _NUMBERS and _NUMBER.fullmatch(cell):
        # The digits go on as they are: a float in between could change them.
        value = msgspec.Raw(cell.encode())
    elif column in _DOCUMENTS and _is_document(cell):
        value = msgspec.Raw(cell.encode())
    free = next((prefix for prefix in FREE_PREFIXES if column.startswith(prefix)), None)
    names = path.split(".") if free is None else [*_parents(path, column, free), column.removeprefix(free)]
    for name in names[:-1]:
        target = target.setdefault(name, {})
    target[names[-1]] = value


def _is_document(cell: str) -> bool:
    """Whether the cell is whole JSON; anything else stays text, which the API refuses in these fields."""
    try:
        msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _parents(path: str, column: str, free: str) -> list[str]:
    return path.removesuffix(column.removeprefix(free)).rstrip(".").split(".")
