"""What this room tells the rooms above."""

from datetime import datetime
from typing import ClassVar, Literal
from uuid import UUID

import msgspec

from regulars.work.facts import Fact

Change = Literal["created", "updated", "deleted"]


class ProfileChange(msgspec.Struct, frozen=True):
    """One change of one profile, with the profile as the API would have shown it right after; of a deleted one only
    its two ids."""

    id: UUID
    change: Change
    shown: msgspec.Raw


class ProfilesChanged(Fact, frozen=True):
    """Profiles were created, updated or deleted; every change that the API would show is in exactly one fact."""

    topic: ClassVar[str] = "profiles.changed"
    on_interest: ClassVar[bool] = True

    # The time of the transaction that changed them.
    at: datetime
    changes: tuple[ProfileChange, ...]
