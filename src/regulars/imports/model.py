"""A row of a file, what became of it, and the sum over a whole file."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from regulars.kit.errors import ApiError

ROW_BYTES_MAX: Final = 1 << 20


class Kind(StrEnum):
    SALES = "sales"
    PROFILES = "profiles"
    STORES = "stores"
    CONSENTS = "consents"


class Outcome(StrEnum):
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
class Report:
    counts: Counter[Outcome] = field(default_factory=Counter)
    # Sales whose ticket differs from the one that was there first: counted as duplicates, and kept as collisions.
    differing: int = 0
    # Fields that the API does not have, by path, with the number of rows that had them.
    ignored: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        return self.counts.total()

    def as_data(self) -> dict[str, int]:
        counted = {outcome.value: self.counts[outcome] for outcome in Outcome}
        ignored = {f"ignored {path}": times for path, times in self.ignored.items()}
        return {"rows": self.rows, **counted, "differing": self.differing, **ignored}
