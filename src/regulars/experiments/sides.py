"""The sides of a split step of a journey: to which of them each customer belongs. No I/O."""

import hashlib
from typing import Final
from uuid import UUID

# Random percentages are multiples of 0.01.
_BUCKETS: Final = 10_000


def random_percent(journey_id: UUID, profile_id: UUID, *, salt: str) -> float:
    """A pseudo-random number from 0 to 100, which is always the same for a customer, a journey and a salt."""
    digest = hashlib.sha256(journey_id.bytes + profile_id.bytes + salt.encode()).digest()
    return int.from_bytes(digest[:8], "big") % _BUCKETS / 100
