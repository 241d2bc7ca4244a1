"""A row of an imported file, its outcome, and the report about all rows."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from regulars.kit.errors import ApiError

# One MiB.
ROW_BYTES_MAX: Final = 1 << 20


class FileError(Exception):
    """A file, its header or the mapping cannot be used; the message is one sentence for the user."""


class ImportKind(StrEnum):
    SALES = "sales"
    PROFILES = "profiles"
    STORES = "stores"
    CONSENTS = "consents"


class RowOutcome(StrEnum):
    """The outcome of a row. A `duplicate` is a sale that was stored before; a `superseded` consent is older than a
    later event."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class FileRow:
    """One object of the file as JSON, the number of its line (from 1), and the error if it could not be read."""

    number: int
    body: bytes
    error: ApiError | None = None


@dataclass(slots=True)
class ImportReport:
    counts: Counter[RowOutcome] = field(default_factory=Counter)
    # Sales whose id was stored before with other content: counted as duplicates, and stored as conflicting tickets.
    differing: int = 0
    # Unknown fields of the rows, each with the number of rows that have it.
    ignored: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        return self.counts.total()

    def as_data(self) -> dict[str, Any]:
        counted = {outcome.value: self.counts[outcome] for outcome in RowOutcome}
        return {"rows": self.rows, **counted, "differing": self.differing, "ignored": dict(self.ignored)}
