"""The facts of sales: events that are recorded for listeners in the modules that import it."""

from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class SalesRecorded(Fact, frozen=True):
    """New sales were inserted; each is in exactly one fact. `property_keys` are keys of product properties that are not
    in the catalog yet."""

    topic: ClassVar[str] = "sales.recorded"

    sales: list[UUID]
    property_keys: tuple[str, ...] = ()

    def subjects(self) -> list[UUID]:
        return self.sales
