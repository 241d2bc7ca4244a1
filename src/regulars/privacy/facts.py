"""What this room tells itself for later."""

from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class ProfileErased(Fact, frozen=True):
    """A profile is gone; whatever was being written about it at that moment has still to be looked for."""

    topic: ClassVar[str] = "privacy.profile_erased"

    profile_id: UUID
