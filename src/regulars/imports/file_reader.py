"""Detect the format of a file (NDJSON, CSV or spreadsheet) and read its rows one at a time; only a spreadsheet is held
in memory as a whole."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from regulars.imports import sources
from regulars.imports.csv_rows import Header, group_tickets, read_rows, too_large
from regulars.imports.mapping import FileMapping
from regulars.imports.model import ROW_BYTES_MAX, FileError, FileRow, ImportKind

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
PEEK_BYTES: Final = 4096

Format = Literal["ndjson", "csv", "xlsx"]
FORMATS: Final = ("ndjson", "csv", "xlsx")
NO_MAPPING: Final = FileMapping()


@dataclass(frozen=True, slots=True)
class File:
    """The rows in the order of the file, remarks for the user about how they were read, and the ignored columns."""

    rows: Iterator[FileRow]
    remarks: tuple[str, ...] = ()
    ignored_columns: tuple[str, ...] = ()


def guess_format(stream: io.BufferedReader) -> Format:
    """Return the format: a spreadsheet begins with a signature, and NDJSON with a brace; any other file is CSV."""
    if sources.is_spreadsheet(stream):
        return "xlsx"
    beginning = stream.peek(PEEK_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
    return "ndjson" if beginning[:1] in (b"{", b"") else "csv"


def read_file(
    stream: io.BufferedReader, kind: ImportKind, file_format: Format | None, mapping: FileMapping = NO_MAPPING
) -> File:
    """Open the file. Raises FileError, before the first row is read, if the file or its header cannot be used."""
    stream = sources.decompress(stream)
    file_format = file_format or guess_format(stream)
    if file_format == "ndjson":
        if mapping.columns:
            raise FileError("NDJSON has no columns to map: its fields are those of the API.")
        return File(_read_ndjson(stream))
    table = sources.read_spreadsheet(stream, mapping.sheet) if file_format == "xlsx" else sources.read_csv(stream)
    header = Header.read(kind, table.header, mapping.columns)
    records = read_rows(header, table.records, mapping.file_format, lines_before=table.lines_before)
    rows = group_tickets(records) if kind is ImportKind.SALES else (record.as_row() for record in records)
    return File(rows, table.remarks, header.ignored_columns)


def _read_ndjson(stream: io.BufferedReader) -> Iterator[FileRow]:
    number = 0
    # One byte more than allowed, to find out whether a line is too long.
    while line := stream.readline(ROW_BYTES_MAX + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if len(line) > ROW_BYTES_MAX and not line.endswith(b"\n"):
            _skip_line(stream)
            yield FileRow(number, line[:PEEK_BYTES], too_large())
        elif line.strip():
            yield FileRow(number, line.strip())


def _skip_line(stream: io.BufferedReader) -> None:
    while (part := stream.readline(ROW_BYTES_MAX)) and not part.endswith(b"\n"):
        pass
