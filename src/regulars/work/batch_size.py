"""How many rows a turn takes: half as many after a batch that ran out of time, more again after one that did not."""

from uuid import UUID

from psycopg.errors import LockNotAvailable, QueryCanceled

# Another transaction holds a lock that the batch needs, or a statement timed out. A smaller batch may succeed.
HELD_UP = (LockNotAvailable, QueryCanceled)


class BatchSize:
    """The size for each organization; those with the usual size cost nothing."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._reduced: dict[UUID, int] = {}

    def of(self, organization_id: UUID) -> int:
        return self._reduced.get(organization_id, self._rows_max)

    def halve(self, organization_id: UUID, rows: int) -> bool:
        """After a batch of so many rows was held up; False if it was a single row."""
        if rows <= 1:
            return False
        self._reduced[organization_id] = min(rows, self.of(organization_id)) // 2
        return True

    def grow(self, organization_id: UUID) -> None:
        """After a batch that got through: by a quarter, so that most of what is tried gets through."""
        rows = self._reduced.pop(organization_id, self._rows_max)
        rows += max(1, rows // 4)
        if rows < self._rows_max:
            self._reduced[organization_id] = rows
