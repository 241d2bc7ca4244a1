"""From a file to rows: find out what it is, and never hold more than a row of it in memory."""

import csv
import io
from collections.abc import Iterator
from typing import Final, Literal

from regulars.imports.csv_rows import Header, HeaderError, Reader, group_lines, rows_of, too_large
from regulars.imports.model import ROW_BYTES_MAX, Kind, Row

# Shops export with whatever their spreadsheet likes; none of these occurs in a field name.
DELIMITERS: Final = (",", ";", "\t")
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
PEEK_BYTES: Final = 4096

Format = Literal["ndjson", "csv"]

__all__ = ["Format", "HeaderError", "guess_format", "read_rows"]


def guess_format(stream: io.BufferedReader) -> Format:
    """A row of NDJSON begins with a brace, and no field name does."""
    beginning = stream.peek(PEEK_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
    return "ndjson" if beginning[:1] in (b"{", b"") else "csv"


def read_rows(stream: io.BufferedReader, kind: Kind, form: Format) -> Iterator[Row]:
    """The rows in the order of the file; raises HeaderError before the first one if a CSV header cannot be used."""
    return _read_ndjson(stream) if form == "ndjson" else _read_csv(stream, kind)


def _read_ndjson(stream: io.BufferedReader) -> Iterator[Row]:
    number = 0
    while line := stream.readline(ROW_BYTES_MAX + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if len(line) > ROW_BYTES_MAX and not line.endswith(b"\n"):
            _skip_line(stream)
            yield Row(number, line[:PEEK_BYTES], too_large())
        elif line.strip():
            yield Row(number, line.strip())


def _skip_line(stream: io.BufferedReader) -> None:
    while (rest := stream.readline(ROW_BYTES_MAX)) and not rest.endswith(b"\n"):
        pass


def _read_csv(stream: io.BufferedReader, kind: Kind) -> Iterator[Row]:
    # Bytes that are no UTF-8 survive as lone surrogates and are refused with their row, not with the file.
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    first = text.readline()
    delimiter = max(DELIMITERS, key=first.count)
    csv.field_size_limit(ROW_BYTES_MAX)
    header = Header.read(kind, next(csv.reader([first], delimiter=delimiter), []))
    return _read_records(text, header, csv.reader(text, delimiter=delimiter), kind)


def _read_records(text: io.TextIOWrapper, header: Header, reader: Reader, kind: Kind) -> Iterator[Row]:
    records = rows_of(header, reader, lines_before=1)
    try:
        yield from group_lines(records) if kind is Kind.SALES else (record.as_row() for record in records)
    finally:
        # Otherwise the wrapper would close the file, which is not ours, when it is collected.
        text.detach()
