"""A row of a file, what became of it, and the sum over a whole file."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from regulars.kit.errors import ApiError

ROW_BYTES_MAX: Final = 1 << 20


class FileError(Exception):
    """A file, its header or the mapping cannot be used; the message is one sentence for the user."""


class ImportKind(StrEnum):
    SALES = "sales"
    PROFILES = "profiles"
    STORES = "stores"
    CONSENTS = "consents"


class RowOutcome(StrEnum):
    """What a row did. A `duplicate` is a sale that was there before, a `superseded` consent has newer ones after it."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DUPLICATE = "duplicate"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Row:
    """One object of the file as JSON, where it stands (counted from 1), or why it could not even be read."""

    number: int
    body: bytes
    unreadable: ApiError | None = None


@dataclass(slots=True)
class ImportReport:
    counts: Counter[RowOutcome] = field(default_factory=Counter)
    # Sales whose ticket differs from the one that was there first: counted as duplicates, and kept as collisions.
    differing: int = 0
    # What the rows said that no field of the API hears, and how many of them said it.
    ignored: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        return self.counts.total()

    def as_data(self) -> dict[str, Any]:
        counted = {outcome.value: self.counts[outcome] for outcome in RowOutcome}
        return {"rows": self.rows, **counted, "differing": self.differing, "ignored": dict(self.ignored)}
