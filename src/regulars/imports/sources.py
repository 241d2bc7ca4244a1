"""Read a CSV file (compressed or not, in any common encoding) or a spreadsheet as a table of strings."""

import codecs
import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final, Protocol

import python_calamine

from regulars.imports.model import ROW_BYTES_MAX, FileError

# How much of a file is read ahead to detect its format and encoding.
PEEK_BYTES: Final = 1 << 16
GZIP: Final = b"\x1f\x8b"
# The signatures of XLSX and ODS, and of the older XLS.
SPREADSHEETS: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# Delimiters that spreadsheet programs write; none of them occurs in a field name.
DELIMITERS: Final = (",", ";", "\t")
# Spreadsheet programs may write a first line that names the delimiter.
SEPARATOR_LINE: Final = "sep="
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
FALLBACK_ENCODING: Final = "cp1252"
# Spreadsheets show at most 15 digits of a number; the rest is the error of a formula: 1.1 * 3 is 3.3000000000000003.
SPREADSHEET_DIGITS: Final = 15


class CsvReader(Protocol):
    """The part of the interface of `csv.reader` that imports use."""

    @property
    def line_num(self) -> int: ...

    def __next__(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Table:
    """A file as strings: the names of its columns, and its records."""

    header: list[str]
    records: CsvReader
    # Lines above the first record.
    lines_before: int
    # Remarks for the user about how the file was read.
    remarks: tuple[str, ...] = ()


def decompress(stream: io.BufferedReader) -> io.BufferedReader:
    """Return the file, decompressed if it is gzip."""
    if not stream.peek(len(GZIP)).startswith(GZIP):
        return stream
    return io.BufferedReader(gzip.GzipFile(fileobj=stream))


def is_spreadsheet(stream: io.BufferedReader) -> bool:
    return stream.peek(PEEK_BYTES).startswith(SPREADSHEETS)


def read_spreadsheet(stream: io.BufferedReader, sheet: str | None) -> Table:
    """Read the sheet of that name, or the first one, with its cells as strings."""
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(stream.read()))
        names = book.sheet_names
        if sheet is not None and sheet not in names:
            raise FileError(f"The spreadsheet has no sheet '{sheet}'; it has {', '.join(names)}.")
        rows = book.get_sheet_by_name(sheet or names[0]).to_python(skip_empty_area=False)
    except (python_calamine.CalamineError, IndexError, ValueError) as error:
        raise FileError(f"The spreadsheet cannot be read: {error}.") from error
    texts = [[_format_cell(cell) for cell in row] for row in rows]
    if not texts:
        raise FileError("The file has no header.")
    return Table(texts[0], _SpreadsheetRows(texts[1:]), lines_before=1)


def read_csv(stream: io.BufferedReader) -> Table:
    """Read CSV. The delimiter is the one in the first line (`sep=;`), else the one that gives the header most
    columns."""
    encoding, remarks = _detect_encoding(stream)
    # Invalid bytes become lone surrogates, so that only their row is refused, and not the whole file.
    text = io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline="")
    first, lines = text.readline(), 1
    delimiter = None
    if first.lower().startswith(SEPARATOR_LINE):
        delimiter = first[len(SEPARATOR_LINE) :].strip("\r\n")[:1] or None
        first, lines = text.readline(), 2
    csv.field_size_limit(ROW_BYTES_MAX)
    delimiter = delimiter or max(DELIMITERS, key=lambda mark: len(_split_line(first, mark)))
    return Table(_split_line(first, delimiter), _CsvLines(text, delimiter), lines_before=lines, remarks=remarks)


def _split_line(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter), [])


def _detect_encoding(stream: io.BufferedReader) -> tuple[str, tuple[str, ...]]:
    beginning = stream.peek(PEEK_BYTES)
    for mark, encoding in _BYTE_ORDER_MARKS:
        if beginning.startswith(mark):
            return encoding, ()
    if beginning[1:2] == b"\0" or beginning[:1] == b"\0":
        is_little_endian = beginning[1:2] == b"\0"
        return ("utf-16-le" if is_little_endian else "utf-16-be"), ("The file was read as UTF-16.",)
    if _is_utf8(stream, beginning):
        return "utf-8", ()
    return FALLBACK_ENCODING, ("The file is not UTF-8; it was read as Windows-1252. Check a name with an accent.",)


def _is_utf8(stream: io.BufferedReader, beginning: bytes) -> bool:
    """Check the whole file if it is seekable, else only its beginning, which may end inside a character."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        if not stream.seekable():
            decoder.decode(beginning)
            return True
        position = stream.tell()
        try:
            while piece := stream.read(PEEK_BYTES):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        finally:
            stream.seek(position)
    except UnicodeDecodeError:
        return False
    return True


class _CsvLines:
    """A CSV reader that leaves the caller's file open: the text wrapper would close the file when it is
    garbage-collected, so it is detached first."""

    def __init__(self, text: io.TextIOWrapper, delimiter: str) -> None:
        self._text = text
        self._reader = csv.reader(text, delimiter=delimiter)

    @property
    def line_num(self) -> int:
        return self._reader.line_num

    def __next__(self) -> list[str]:
        return next(self._reader)

    def __del__(self) -> None:
        if not self._text.closed:
            self._text.detach()


class _SpreadsheetRows:
    """The rows of a spreadsheet with the interface of a CSV reader."""

    def __init__(self, rows: list[list[str]]) -> None:
        self._rows: Iterator[list[str]] = iter(rows)
        self.line_num = 0

    def __next__(self) -> list[str]:
        row = next(self._rows)
        self.line_num += 1
        return row if any(row) else []


def _format_cell(cell: object) -> str:
    """Convert the value of a spreadsheet cell to the text that a CSV file would have."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else f"{cell:.{SPREADSHEET_DIGITS}g}"
    if isinstance(cell, datetime):
        return cell.isoformat(timespec="milliseconds" if cell.microsecond else "seconds")
    if isinstance(cell, date | time | timedelta):
        return str(cell)
    return str(cell).strip()
