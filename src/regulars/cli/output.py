"""Print the output of commands, data to stdout and everything else to stderr; define their errors and exit codes."""

import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from regulars.kit import log
from regulars.kit.clock import format_timestamp

# Without a terminal, tables do not wrap, so that `grep` finds whole rows.
PIPE_CHARACTERS: Final = 250
COLUMN_GAP: Final = 2

_log = log.get(__name__)
out: Final = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPE_CHARACTERS)
err: Final = Console(stderr=True, highlight=False, soft_wrap=True)


class ExitCode(IntEnum):
    """The exit codes of commands; `docs/operations.md` lists them."""

    FAILED = 1
    USAGE = 2
    DATABASE = 3
    # The exit codes that shells report for processes ended by Ctrl+C and SIGTERM.
    INTERRUPTED = 130
    TERMINATED = 143


class CommandError(Exception):
    """The command failed; the message is one sentence that says what to do."""

    def __init__(self, sentence: str, *, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def print_notice(sentence: str) -> None:
    """Write a sentence for the operator to stderr, or as an event if a server or worker logs there as JSON."""
    if log.writes_json():
        _log.warning("command.notice", text=sentence)
    else:
        err.print(sentence, markup=False)


def print_json(value: Any) -> None:
    """Write indented JSON, with times as the API writes them."""
    encoded = msgspec.json.format(msgspec.json.encode(_format_times(value), enc_hook=_encode_path_or_uuid), indent=2)
    out.print(encoded.decode(), markup=False)


Column = str | tuple[str, str | Callable[[dict[str, Any]], object]]


def print_rows(rows: list[dict[str, Any]], columns: Sequence[Column], *, as_json: bool) -> None:
    """Write rows as JSON, or as a table of some of their values.

    A column is the name of a value, from which its heading is made (`created_at` becomes CREATED (UTC)), or a heading
    together with a path such as `size.total` or with a function of the row.
    """
    if as_json:
        print_json(rows)
        return
    sources = [(_make_heading(column), column) if isinstance(column, str) else column for column in columns]
    cells = [[_format_cell(_read_value(row, source)) for _, source in sources] for row in rows]
    print_table([heading for heading, _ in sources], cells)


def print_outcome(data: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    """Write the result of a command as JSON, or as a sentence on stderr."""
    if as_json:
        print_json(data)
    else:
        err.print(sentence, markup=False)


def print_result(data: dict[str, Any], line: str, *, as_json: bool) -> None:
    """Write the result of a command as JSON, or as one line that a script can read."""
    if as_json:
        print_json(data)
    else:
        typer.echo(line)


def pick(row: object, *names: str) -> dict[str, Any]:
    """Return the values of these fields of a row, by field name."""
    return {name: getattr(row, name) for name in names}


def print_table(headings: list[str], rows: list[list[str]]) -> None:
    """Write a table to stdout. If no cell has to wrap, the rows are padded here: rich takes seconds for 10,000 rows."""
    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    is_plain = all(cell.isprintable() for row in rows for cell in row)
    if is_plain and sum(widths) + COLUMN_GAP * (len(widths) - 1) <= out.width:
        lines = [(" " * COLUMN_GAP).join(map(_pad, row, widths)) for row in (headings, *rows)]
        out.print(Text(lines[0], style="bold"))
        out.file.write("".join(f"{line}\n" for line in lines[1:]))
    else:
        _print_wrapped(headings, rows)


def _pad(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))


def _print_wrapped(headings: list[str], rows: list[list[str]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, heading in enumerate(headings):
        # The first column is the id, which people copy: it must not wrap.
        table.add_column(heading, overflow="fold", no_wrap=position == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out.print(table)


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 row` or `2,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_time(time: datetime | None) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if time else ""


def _make_heading(name: str) -> str:
    return re.sub("_at$", " (utc)", name).replace("_", " ").upper()


def _read_value(row: dict[str, Any], source: str | Callable[[dict[str, Any]], object]) -> object:
    if not isinstance(source, str):
        return source(row)
    value: Any = row
    for name in source.split("."):
        value = None if value is None else value[name]
    return value


def _format_cell(value: object) -> str:
    if value is None or isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {inner}" for name, inner in value.items())
    return ",".join(value) if isinstance(value, list) else str(value)


def _format_times(value: Any) -> Any:
    """Return the same data with times as the API writes them."""
    if isinstance(value, datetime):
        return format_timestamp(value)
    if isinstance(value, dict):
        return {name: _format_times(inner) for name, inner in value.items()}
    return [_format_times(inner) for inner in value] if isinstance(value, list) else value


def _encode_path_or_uuid(value: object) -> object:
    if isinstance(value, Path | UUID):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")
