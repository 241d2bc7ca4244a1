"""The data of a request log entry (an API response), and the limits of the log."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from regulars.kit.ids import PROFILE, RESERVED_PREFIXES

RETENTION: Final = timedelta(days=7)
ENTRIES_PER_KEY_MAX: Final = 1_000
REFUSALS_PER_DAY_MAX: Final = 10_000
REFUSED_STATUS_MIN: Final = 400
FAILED_STATUS_MIN: Final = 500
# Path parameters whose value identifies a person, unless it is a canonical id.
_PERSONAL_PARAMETERS: Final = frozenset({"{profile_id}", "{subscription_id}"})


class ResponseFilter(StrEnum):
    """Which responses a list shows: all, errors from status 400, or errors from status 500."""

    ALL = "all"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RequestLogEntry:
    """One response. `target` is the path, without ids that identify a person; `problem` is the body of an error."""

    id: UUID
    api_key_id: UUID
    answered_at: datetime
    method: str
    target: str
    status: int
    code: str | None
    duration_us: int
    request_id: str
    profile_id: UUID | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of responses, including those that the log did not store."""

    responses: int = 0
    refusals: int = 0


def mask_target(template: str, references: tuple[str, ...]) -> str:
    """Fill the ids of a request into the path of its route, except those that identify a person."""
    remaining = iter(references)
    parts = []
    for part in template.split("/"):
        if not part.startswith("{"):
            parts.append(part)
            continue
        reference = next(remaining, part)
        is_hidden = part in _PERSONAL_PARAMETERS and not reference.startswith(RESERVED_PREFIXES)
        parts.append(part if is_hidden else reference)
    return "/".join(parts)


def find_profile_id(references: tuple[str, ...]) -> UUID | None:
    """Return the profile that a path names by its canonical id."""
    return next((profile for reference in references if (profile := PROFILE.decode(reference)) is not None), None)
