"""The random share of a split."""

import hashlib
from typing import Final
from uuid import UUID

_HUNDREDTHS: Final = 10_000


def share_of(journey_id: UUID, profile_id: UUID) -> float:
    """From 0 to 100, always the same for a customer and a journey."""
    digest = hashlib.sha256(journey_id.bytes + profile_id.bytes).digest()
    return int.from_bytes(digest[:8], "big") % _HUNDREDTHS / 100
