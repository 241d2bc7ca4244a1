"""Count clicks on short links by campaign and variant or by journey and step, and find the clicks of customers that a
purchase may be credited to."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.messaging.links import queries
from regulars.messaging.links.model import ClickClass, CreditableClick, LinkOrigin
from regulars.messaging.model import OriginKind


class ClickCount(NamedTuple):
    """Clicks by people, and by probable machines. A person who clicks twice counts twice."""

    people: int = 0
    machines: int = 0

    def __add__(self, other: object) -> "ClickCount":
        if not isinstance(other, ClickCount):
            return NotImplemented
        return ClickCount(self.people + other.people, self.machines + other.machines)


async def count_clicks(
    tx: Tx, organization_id: UUID, kind: OriginKind, origin_ids: Collection[UUID]
) -> Mapping[UUID, Mapping[str, ClickCount]]:
    """The counts by campaign and variant (`1` is the first), or by journey and step, of origins with clicks."""
    counts: dict[UUID, dict[str, ClickCount]] = defaultdict(dict)
    totals: list[tuple[LinkOrigin, ClickClass, int]] = await queries.find_totals(
        tx, organization_id, kind.value, origin_ids
    )
    for origin, class_, clicks in totals:
        count = ClickCount(people=clicks) if class_ is ClickClass.PERSON else ClickCount(machines=clicks)
        counts[origin.id][origin.step] = counts[origin.id].get(origin.step, ClickCount()) + count
    return counts


async def find_creditable_clicks(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], *, since: datetime, until: datetime
) -> list[CreditableClick]:
    """Clicks by people on links of their own texts, which a purchase may be credited to; one for each text and
    minute."""
    return await queries.find_creditable_clicks(tx, organization_id, profile_ids, since=since, until=until)


async def add_counts(
    tx: Tx, organization_id: UUID, kind: OriginKind, origin_id: UUID, *, step: str, counts: Mapping[ClickClass, int]
) -> None:
    """Add clicks that do not belong to a short link, such as the invented clicks of the demo, to the counts."""
    rows = [(kind.value, origin_id, step, class_.value, number) for class_, number in sorted(counts.items())]
    await queries.add_totals(tx, organization_id, rows)
