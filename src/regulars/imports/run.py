"""Run a file through: batch by batch, one transaction each, and no row in the way of another."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import psycopg

from regulars.imports.model import ImportKind, ImportReport, Row, RowOutcome
from regulars.imports.take import Taken, Target, decode_row, take
from regulars.kit.bisect import bisect_failures
from regulars.kit.db import Database
from regulars.kit.errors import ApiError, InternalError, Unavailable

BATCH_ROWS: Final = 250
# Locks that running requests hold are gone in a moment.
RETRY_WAITS_S: Final = (0.05, 0.2, 1.0, 3.0)
_DATA_ERRORS: Final = ("22", "23")

# Told about every row that is refused.
OnRejected = Callable[[Row, ApiError], None]
# Told after each batch how far the file was read.
OnProgress = Callable[[int], None]


class _RolledBackError(Exception):
    """Ends the transaction of a dry run, which must not stay."""


async def run_import(
    database: Database,
    kind: ImportKind,
    rows: Iterable[Row],
    target: Target,
    *,
    dry_run: bool = False,
    on_rejected: OnRejected,
    on_progress: OnProgress,
) -> ImportReport:
    """Take all rows in. In a dry run each batch is carried out and rolled back, so that nothing stays of any.

    A dry run therefore tells of each row what it would do to the data as they are now together with the rows of its own
    batch; what rows of earlier batches would have left behind it does not see.
    """
    report = ImportReport()
    for batch in _batches(rows):
        decoded = [(row, decode_row(kind, row, target)) for row in batch]
        valid = [command for _, command in decoded if not isinstance(command, ApiError)]
        taken = iter(await _take_whole(database, kind, valid, target, dry_run=dry_run) if valid else [])
        for row, command in decoded:
            result = command if isinstance(command, ApiError) else next(taken)
            if isinstance(result, ApiError):
                report.counts[RowOutcome.REJECTED] += 1
                on_rejected(row, result)
            else:
                report.counts[result.outcome] += 1
                report.differing += result.differs
                report.ignored.update(command.ignored)
        on_progress(len(batch))
    return report


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH_ROWS)):
        yield batch


async def _take_whole(
    database: Database, kind: ImportKind, commands: Sequence[Any], target: Target, *, dry_run: bool
) -> list[Taken | ApiError]:
    """A batch that the database refuses for its content is halved until only the guilty row is left out."""

    async def take_some(some: Sequence[Any]) -> list[Taken | ApiError]:
        return await _take_patiently(database, kind, some, target, dry_run=dry_run)

    return await bisect_failures(commands, take_some, _refused)


def _refused(commands: Sequence[Any], error: Exception) -> list[Taken | ApiError] | None:
    """What is told of a row that the database refuses alone."""
    if not isinstance(error, psycopg.Error) or error.sqlstate is None or error.sqlstate[:2] not in _DATA_ERRORS:
        raise error
    return [InternalError(f"The database refused the row ({error.sqlstate}).")] if len(commands) == 1 else None


async def _take_patiently(
    database: Database, kind: ImportKind, commands: Sequence[Any], target: Target, *, dry_run: bool
) -> list[Taken | ApiError]:
    for wait_s in (*RETRY_WAITS_S, None):
        try:
            return await _take_once(database, kind, commands, target, dry_run=dry_run)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable, Unavailable) as error:
            if wait_s is None:
                return [Unavailable(f"Other writers kept the row busy: {error}.")] * len(commands)
            await asyncio.sleep(wait_s)
    raise AssertionError("the last wait is None and returns")


async def _take_once(
    database: Database, kind: ImportKind, commands: Sequence[Any], target: Target, *, dry_run: bool
) -> list[Taken | ApiError]:
    taken: list[Taken | ApiError] = []
    try:
        async with database.transaction() as tx:
            taken = await take(tx, kind, commands, target)
            if dry_run:
                raise _RolledBackError
    except _RolledBackError:
        pass
    return taken
