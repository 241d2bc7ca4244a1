"""Sums of credits by the month in which their texts left, from the totals of days."""

from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from regulars.attribution.model import Attributed, Origin
from regulars.kit.db import Tx
from regulars.messaging.model import OriginKind


class MonthSums(NamedTuple):
    """Of one origin in one currency; `month` is its first day."""

    origin: Origin
    month: date
    currency: str
    sums: Attributed


async def read_sums_by_month(tx: Tx, organization_id: UUID, *, first: date, last: date) -> list[MonthSums]:
    """Of texts that left on these days, by origin without its step."""
    rows = await tx.fetch(
        """
        SELECT origin_kind, origin_id, '', date_trunc('month', day)::date, currency,
               sum(tickets)::bigint, sum(gross_cents), sum(net_cents), sum(unmatched_cents)
        FROM attribution_totals
        WHERE organization_id = %s AND day BETWEEN %s AND %s
        GROUP BY 1, 2, 4, 5
        HAVING sum(tickets) > 0
        """,
        (organization_id, first, last),
    )
    return _read(rows)


async def read_sums_of(tx: Tx, organization_id: UUID, origin_id: UUID) -> list[MonthSums]:
    """All of one campaign or journey, by step."""
    rows = await tx.fetch(
        """
        SELECT origin_kind, origin_id, step, date_trunc('month', day)::date, currency,
               sum(tickets)::bigint, sum(gross_cents), sum(net_cents), sum(unmatched_cents)
        FROM attribution_totals
        WHERE organization_id = %s AND origin_id = %s
        GROUP BY 1, 2, 3, 4, 5
        HAVING sum(tickets) > 0
        """,
        (organization_id, origin_id),
    )
    return _read(rows)


def _read(rows: Iterable[tuple[Any, ...]]) -> list[MonthSums]:
    return [
        MonthSums(Origin(OriginKind(kind), origin_id, step), month, currency, Attributed(*map(int, sums)))
        for kind, origin_id, step, month, currency, *sums in rows
    ]
