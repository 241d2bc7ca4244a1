"""Totals of campaigns: how many recipients have each outcome, by arm (a variant, or the holdout) and country. Each
change of an outcome updates the totals in the same transaction, so that they always add up to the audience."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from regulars.campaigns.model import TotalRow, was_sent
from regulars.kit.arrays import Bigints, Ids, Labels
from regulars.kit.columns import Columns
from regulars.kit.db import Tx


class TotalKey(NamedTuple):
    campaign_id: UUID
    arm: int
    outcome: str
    reason: str = ""
    country: str = ""


_DIFFERENCES: Final = Columns(
    campaign_id=Ids, arm=Bigints, outcome=Labels, reason=Labels, country=Labels, recipients=Bigints, parts=Bigints
)
_ADD: Final = _DIFFERENCES.write(
    """
    INSERT INTO campaign_totals (organization_id, {columns})
    SELECT %(organization_id)s, it.* FROM {rows}
    ON CONFLICT (organization_id, campaign_id, arm, outcome, reason, country)
    DO UPDATE SET recipients = campaign_totals.recipients + EXCLUDED.recipients,
                  parts = campaign_totals.parts + EXCLUDED.parts
    """
)


class Differences:
    """Collects changes of totals during a transaction, to write them together at its end."""

    def __init__(self) -> None:
        self._recipients: Counter[TotalKey] = Counter()
        self._parts: Counter[TotalKey] = Counter()

    def add(self, key: TotalKey, recipients: int = 1, *, parts: int = 0) -> None:
        self._recipients[key] += recipients
        self._parts[key] += parts

    def move(self, before: TotalKey, after: TotalKey, *, parts_before: int = 0, parts_after: int = 0) -> None:
        """Move one recipient from one total to another."""
        self.add(before, -1, parts=-parts_before)
        self.add(after, 1, parts=parts_after)

    async def write(self, tx: Tx, organization_id: UUID) -> None:
        """Write the totals in the order of their keys, so that two transactions never deadlock. Totals are the last
        rows that a transaction locks."""
        changed = [
            (*key, self._recipients[key], self._parts[key])
            for key in sorted(self._recipients)
            if self._recipients[key] or self._parts[key]
        ]
        if changed:
            await tx.execute(_ADD, {"organization_id": organization_id, **_DIFFERENCES.of_tuples(changed)})


async def list_totals(tx: Tx, organization_id: UUID, campaign_id: UUID) -> list[TotalRow]:
    return await tx.fetch_all(
        TotalRow,
        """
        SELECT {columns} FROM campaign_totals
        WHERE organization_id = %s AND campaign_id = %s AND (recipients <> 0 OR parts <> 0)
        ORDER BY arm, outcome, reason, country
        """,
        (organization_id, campaign_id),
    )


async def count_sent(tx: Tx, organization_id: UUID, campaign_ids: Collection[UUID]) -> Mapping[UUID, int]:
    """The recipients whose text left, for each campaign."""
    rows = await tx.fetch(
        """
        SELECT campaign_id, outcome, reason, sum(recipients)::bigint FROM campaign_totals
        WHERE organization_id = %s AND campaign_id = ANY (%s::uuid[]) AND arm > 0
        GROUP BY campaign_id, outcome, reason
        """,
        (organization_id, list(campaign_ids)),
    )
    sent = Counter[UUID]()
    for campaign_id, outcome, reason, recipients in rows:
        if was_sent(outcome, reason):
            sent[campaign_id] += recipients
    return sent


async def count_outcomes(
    tx: Tx, organization_id: UUID, campaign_ids: Collection[UUID]
) -> Mapping[UUID, Mapping[str, int]]:
    """Recipients by outcome, for each campaign. Customers in no arm (-1) are not recipients, and not counted."""
    rows = await tx.fetch(
        """
        SELECT campaign_id, outcome, sum(recipients)::bigint FROM campaign_totals
        WHERE organization_id = %s AND campaign_id = ANY (%s::uuid[]) AND arm >= 0
        GROUP BY campaign_id, outcome
        """,
        (organization_id, list(campaign_ids)),
    )
    outcomes: dict[UUID, dict[str, int]] = {}
    for campaign_id, outcome, recipients in rows:
        outcomes.setdefault(campaign_id, {})[outcome] = recipients
    return outcomes
