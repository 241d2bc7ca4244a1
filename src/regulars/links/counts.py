"""Count clicks on short links by campaign and variant or by journey and step, and find the clicks of customers that a
purchase may be credited to."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx
from regulars.links import link_rows as queries
from regulars.links.model import ClickClass, CreditableClick
from regulars.links.origin_kind import OriginKind


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
    totals = await tx.fetch(
        """
        SELECT origin_id, step, class, clicks FROM click_totals
        WHERE organization_id = %s AND origin_id = ANY (%s::uuid[]) AND origin_kind = %s
        """,
        (organization_id, list(origin_ids), kind.value),
    )
    counts: dict[UUID, dict[str, ClickCount]] = defaultdict(dict)
    for origin_id, step, class_, clicks in totals:
        count = ClickCount(people=clicks) if class_ == ClickClass.PERSON else ClickCount(machines=clicks)
        counts[origin_id][step] = counts[origin_id].get(step, ClickCount()) + count
    return counts


async def find_creditable_clicks(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], *, since: datetime, until: datetime
) -> list[CreditableClick]:
    """Clicks by people on links of their own texts, except opt-out links, which a purchase may be credited to; one for
    each text and minute."""
    return await tx.fetch_all(
        CreditableClick,
        """
        SELECT links.profile_id, links.text_id, clicks.minute
        FROM links
        CROSS JOIN LATERAL (
            SELECT DISTINCT minute FROM clicks
            WHERE organization_id = %(organization_id)s AND code = links.code AND class = 'person'
              AND minute >= %(since)s AND minute < %(until)s
        ) AS clicks
        WHERE links.organization_id = %(organization_id)s AND links.profile_id = ANY (%(profile_ids)s::uuid[])
          AND links.text_id IS NOT NULL AND links.url <> 'opt-out'
        """,
        {"organization_id": organization_id, "profile_ids": list(profile_ids), "since": since, "until": until},
    )


async def add_counts(
    tx: Tx, organization_id: UUID, kind: OriginKind, origin_id: UUID, *, step: str, counts: Mapping[ClickClass, int]
) -> None:
    """Add clicks that do not belong to a short link, such as the invented clicks of the demo, to the counts."""
    rows = [(kind.value, origin_id, step, class_.value, number) for class_, number in sorted(counts.items())]
    await queries.add_totals(tx, organization_id, rows)
