"""Whether the database takes writes: a standby is read-only, and on a full disk nothing that needs room goes in.

Both end without us: somebody promotes the standby or makes room. So the state is what the last writes met, and while it
is bad a small write that is committed finds out, now and then, whether it is over.
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
# Nobody but this transaction ever sees the table. A new one needs new pages, which the room left in an old one would
# not prove.
_PROBE: Final[tuple[LiteralString, ...]] = (
    "CREATE TABLE write_probe AS SELECT md5(n::text) AS filler FROM generate_series(1, 1000) AS n",
    "DROP TABLE write_probe",
)


def trouble(error: BaseException) -> str:
    """What a caller is told about an error of the database that is not the caller's fault."""
    if isinstance(error, ReadOnlySqlTransaction):
        return READ_ONLY
    return DISK_FULL if isinstance(error, DiskFull) else UNREACHABLE


class Writability:
    """One per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_full = False
        self._probed_at = float("-inf")

    def saw(self, error: BaseException) -> str:
        """Note what a request met; give the sentence for its caller."""
        self._is_full = self._is_full or isinstance(error, DiskFull)
        return trouble(error)

    async def find_trouble(self, *, until: float) -> str | None:
        """What keeps the database from taking writes, or None."""
        async with self._database.reading(until=until) as tx:
            [(is_read_only,)] = await tx.fetch(IS_READ_ONLY)
        if is_read_only:
            return READ_ONLY
        if self._is_full and monotonic() - self._probed_at >= PROBE_EVERY_S:
            self._probed_at = monotonic()
            self._is_full = not await self._takes_a_write(until)
        return DISK_FULL if self._is_full else None

    async def _takes_a_write(self, until: float) -> bool:
        try:
            async with self._database.transaction(until=until) as tx:
                for statement in _PROBE:
                    await tx.execute(statement)
        except CONNECTION_ERRORS:
            return False
        except psycopg.Error:
            # A role that may not create tables learns from its next write.
            return True
        return True
