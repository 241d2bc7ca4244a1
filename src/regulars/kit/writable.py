"""Find out whether the database accepts writes: it may be a read-only standby, or its disk may be full.

Each check queries whether it is a standby. A full disk shows in the error of a write; after that error, each check
tries a small write, at most every few seconds, until one succeeds.
"""

from typing import Final, LiteralString

import psycopg
from psycopg.errors import DiskFull, ReadOnlySqlTransaction

from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database

PROBE_EVERY_S: Final = 5.0
UNREACHABLE: Final = "The database cannot be reached; try again."
READ_ONLY: Final = "The database is read-only at the moment; try again."
DISK_FULL: Final = "The database's disk is full; try again when there is room."

IS_READ_ONLY: Final[LiteralString] = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
# A new table needs new disk pages; a write to an existing table could succeed in its free space. The table is dropped
# in the same transaction, so no other transaction sees it.
_PROBE: Final[tuple[LiteralString, ...]] = (
    "CREATE TABLE write_probe AS SELECT md5(n::text) AS filler FROM generate_series(1, 1000) AS n",
    "DROP TABLE write_probe",
)


def describe_outage(error: BaseException) -> str:
    """Return the message to a caller of the API about a database error that the caller did not cause."""
    if isinstance(error, ReadOnlySqlTransaction):
        return READ_ONLY
    return DISK_FULL if isinstance(error, DiskFull) else UNREACHABLE


class Writability:
    """Remembers whether the disk was full; there is one object per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_disk_full = False
        self._probed_at = float("-inf")

    def record_error(self, error: BaseException) -> str:
        """Record the database error of a request; return the message for its caller."""
        self._is_disk_full = self._is_disk_full or isinstance(error, DiskFull)
        return describe_outage(error)

    async def find_write_error(self, *, until: float) -> str | None:
        """Say in one sentence why the database accepts no writes; None if it accepts them."""
        async with self._database.reading(until=until) as tx:
            [(is_read_only,)] = await tx.fetch(IS_READ_ONLY)
        if is_read_only:
            return READ_ONLY
        if self._is_disk_full and monotonic() - self._probed_at >= PROBE_EVERY_S:
            self._probed_at = monotonic()
            self._is_disk_full = not await self._accepts_write(until)
        return DISK_FULL if self._is_disk_full else None

    async def _accepts_write(self, until: float) -> bool:
        try:
            async with self._database.transaction(until=until) as tx:
                for statement in _PROBE:
                    await tx.execute(statement)
        except CONNECTION_ERRORS:
            return False
        except psycopg.Error:
            # Our database user may not create tables: the next real write shows whether the disk is full.
            return True
        return True
