"""The facts that sales publish to the rooms above."""

from typing import ClassVar
from uuid import UUID

from regulars.work.facts import Fact


class SalesRecorded(Fact, frozen=True):
    """New sales are in the table; each is in exactly one fact, with the keys of product properties not yet known."""

    topic: ClassVar[str] = "sales.recorded"

    sales: list[UUID]
    property_keys: tuple[str, ...] = ()
