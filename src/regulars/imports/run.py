"""Import the rows of a file in batches, with one transaction each; a refused row does not affect the other rows."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import psycopg

from regulars.imports.model import FileRow, ImportKind, ImportReport, RowOutcome
from regulars.imports.row_writer import RowResult, Target, decode_row, write_rows
from regulars.kit.bisect import bisect_failures
from regulars.kit.db import Database
from regulars.kit.errors import ApiError, InternalError, Unavailable

BATCH_ROWS: Final = 250
# A batch that fails because a request holds a lock is retried after these waits.
RETRY_WAITS_S: Final = (0.05, 0.2, 1.0, 3.0)
# The SQLSTATE classes of errors that the data itself causes: data exceptions and violated constraints.
_DATA_ERRORS: Final = ("22", "23")

# Called for every refused row.
OnRejected = Callable[[FileRow, ApiError], None]
# Called after each batch with its number of rows.
OnProgress = Callable[[int], None]


async def run_import(
    database: Database,
    kind: ImportKind,
    rows: Iterable[FileRow],
    target: Target,
    *,
    dry_run: bool = False,
    on_rejected: OnRejected,
    on_progress: OnProgress,
) -> ImportReport:
    """Import all rows. A dry run executes each batch and rolls it back.

    So a dry run checks each row against the current data and the rows of its own batch, but not against the rows of
    earlier batches, which were rolled back.
    """
    report = ImportReport()
    write = partial(_write_batch, database, kind, target, dry_run=dry_run)
    for batch in _batches(rows):
        decoded = [(row, decode_row(kind, row, target)) for row in batch]
        valid = [command for _, command in decoded if not isinstance(command, ApiError)]
        # A batch that the database refuses because of its content is bisected: only the faulty rows are rejected.
        results = iter(await bisect_failures(valid, write, _reject) if valid else [])
        for row, command in decoded:
            result = command if isinstance(command, ApiError) else next(results)
            if isinstance(result, ApiError):
                report.counts[RowOutcome.REJECTED] += 1
                on_rejected(row, result)
            else:
                report.counts[result.outcome] += 1
                report.differing += result.differs
                report.ignored.update(command.ignored)
        on_progress(len(batch))
    return report


def _batches(rows: Iterable[FileRow]) -> Iterator[list[FileRow]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH_ROWS)):
        yield batch


def _reject(commands: Sequence[Any], error: Exception) -> list[RowResult | ApiError] | None:
    """Return the error for a single row that the database refused; None for several rows, which the caller bisects."""
    if not isinstance(error, psycopg.Error) or error.sqlstate is None or error.sqlstate[:2] not in _DATA_ERRORS:
        raise error
    return [InternalError(f"The database refused the row ({error.sqlstate}).")] if len(commands) == 1 else None


async def _write_batch(
    database: Database, kind: ImportKind, target: Target, commands: Sequence[Any], *, dry_run: bool
) -> list[RowResult | ApiError]:
    for wait_s in (*RETRY_WAITS_S, None):
        try:
            async with database.dry_run() if dry_run else database.transaction() as tx:
                return await write_rows(tx, kind, commands, target)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable, Unavailable) as error:
            if wait_s is None:
                return [Unavailable(f"Other requests kept the row locked: {error}.")] * len(commands)
            await asyncio.sleep(wait_s)
    raise AssertionError("the last wait is None and returns")
