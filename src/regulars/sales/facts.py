"""The events about sales (facts) that this module records for listeners in other modules."""

from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class SalesRecorded(Fact, frozen=True):
    """New sales were inserted; each sale is in exactly one such event. `property_keys` are keys of product properties
    that may be new to the catalog."""

    topic: ClassVar[str] = "sales.recorded"

    sales: list[UUID]
    property_keys: tuple[str, ...] = ()
