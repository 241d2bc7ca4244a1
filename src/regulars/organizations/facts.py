"""The facts (recorded events) about organizations, which listeners of other modules handle."""

from typing import ClassVar

from regulars.work.facts import Fact


class TimeZoneChanged(Fact, frozen=True):
    """The organization has another time zone, in which its days are counted from now on."""

    topic: ClassVar[str] = "organizations.time_zone_changed"
