"""How commands speak: data on stdout, everything else on stderr, a failure as one sentence and an exit code."""

import sys
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Where there is no terminal there is no width to fit into, and a table that wraps is no use to `grep`.
PIPE_CHARACTERS: Final = 250

out: Final = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPE_CHARACTERS)
err: Final = Console(stderr=True, highlight=False, soft_wrap=True)


class Exit(IntEnum):
    """What the exit code of a command means; `docs/operations.md` lists them."""

    FAILED = 1
    USAGE = 2
    DATABASE = 3
    # As shells number a process that Ctrl+C or SIGTERM ended.
    INTERRUPTED = 130
    TERMINATED = 143


class CommandError(Exception):
    """A command cannot go on; the message is one sentence that says what to do about it."""

    def __init__(self, sentence: str, *, code: Exit = Exit.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def print_json(value: Any) -> None:
    """Write data for programs: indented JSON, times with a `Z`, and nothing around it."""
    encoded = msgspec.json.format(msgspec.json.encode(value, enc_hook=_encode_other), indent=2)
    out.print(encoded.decode(), markup=False)


def print_table(headings: list[str], rows: list[list[str]]) -> None:
    """Write data for people."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, heading in enumerate(headings):
        # The first column is what people copy: it must stay whole.
        table.add_column(heading, overflow="fold", no_wrap=position == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out.print(table)


def counted(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shown_time(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def _encode_other(value: object) -> object:
    if isinstance(value, Path | UUID):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")
