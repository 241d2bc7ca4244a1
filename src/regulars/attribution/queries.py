"""The SQL of credits: purchases attributed to texts."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

from regulars.attribution.model import (
    FROZEN_AFTER,
    TOUCHING_ORIGINS,
    TOUCHING_STATES,
    Attributed,
    Credit,
    Origin,
    Touch,
    TouchKind,
)
from regulars.attribution.month_tables import TotalKey
from regulars.kit.arrays import Bigints, Ids, Labels, Timestamps
from regulars.kit.columns import Columns, fill, names_of
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at
from regulars.links.origin_kind import OriginKind
from regulars.sales.returned_lines import RETURN_WITHIN

# Only this many texts of a customer are read, the newest.
TEXTS_MAX: Final = 1_000
# How far back touches are read. Texts with final credits are read too, so that purchases which belong to them are not
# credited to other texts.
TOUCHES_BACK: Final = FROZEN_AFTER + RETURN_WITHIN
# The id of a text contains the time of its request. A text may wait this long until it is sent.
TEXT_WAITED_MAX: Final = timedelta(days=30)
# How far back sales are read: an older sale can neither be credited nor be matched with a return.
SALES_BACK: Final = TOUCHES_BACK + RETURN_WITHIN


class DueCustomer(NamedTuple):
    """A customer whose credits are to be computed; credits that are final at `since` do not change."""

    profile_id: UUID
    since: datetime
    attempts: int


def total_key(credit: Credit) -> TotalKey:
    return TotalKey(credit.day, credit.origin_kind, credit.origin_id, credit.step, credit.currency)


def sums_of(credit: Credit) -> Attributed:
    return Attributed(1, credit.gross_cents, credit.net_cents, credit.unmatched_cents)


async def find_deliveries(tx: Tx, organization_id: UUID, customers: Mapping[UUID, datetime]) -> dict[UUID, list[Touch]]:
    """The texts that each customer got from 90 days before the given time on. A customer without texts is absent. A
    worker claims a text when it sends it, so `claimed_at` is the time of sending."""
    rows = await tx.fetch(
        """
        SELECT t.profile_id, t.id, t.claimed_at, t.origin_kind, t.step,
               CASE t.origin_kind WHEN 'campaign' THEN t.origin_id WHEN 'journey' THEN r.journey_id END
        FROM unnest(%(ids)s::uuid[], %(first_ids)s::uuid[], %(since)s::timestamptz[]) AS it (id, first_id, since)
        CROSS JOIN LATERAL (
            SELECT profile_id, id, claimed_at, origin_kind, origin_id, step
            FROM texts
            WHERE organization_id = %(organization_id)s AND profile_id = it.id AND id >= it.first_id
              AND claimed_at >= it.since AND state = ANY (%(states)s::text[]) AND origin_kind = ANY (%(kinds)s::text[])
            ORDER BY id DESC
            LIMIT %(limit)s
        ) AS t
        LEFT JOIN LATERAL (
            SELECT journey_id FROM journey_runs
            WHERE organization_id = %(organization_id)s AND id = t.origin_id AND t.origin_kind = 'journey'
            LIMIT 1
        ) AS r ON true
        """,
        {
            "organization_id": organization_id,
            "ids": Ids(customers),
            "first_ids": Ids(first_id_at(until - TOUCHES_BACK - TEXT_WAITED_MAX) for until in customers.values()),
            "since": Timestamps(until - TOUCHES_BACK for until in customers.values()),
            "states": list(TOUCHING_STATES),
            "kinds": list(TOUCHING_ORIGINS),
            "limit": TEXTS_MAX,
        },
    )
    touches: dict[UUID, list[Touch]] = defaultdict(list)
    for profile_id, text_id, sent_at, origin_kind, step, origin_id in rows:
        # For a campaign, `step` is the profile id, which is not part of the origin. The journey of a deleted run is
        # unknown.
        kind = OriginKind(origin_kind)
        origin = Origin(kind, origin_id, step if kind is OriginKind.JOURNEY else "") if origin_id else Origin(kind)
        touches[profile_id].append(Touch(sent_at, TouchKind.DELIVERY, text_id, sent_at, origin))
    return dict(touches)


_CREDITS: Final = Columns(
    sale_id=Ids,
    profile_id=Ids,
    text_id=Ids,
    touch=Labels,
    touched_at=Timestamps,
    window_hours=Bigints,
    sent_at=Timestamps,
    day=(Labels, date.isoformat),
    origin_kind=Labels,
    origin_id=Ids,
    step=Labels,
    occurred_at=Timestamps,
    currency=Labels,
    gross_cents=Bigints,
    net_cents=Bigints,
    unmatched_cents=(Labels, str),
)
_UPSERT_CREDITS: Final = _CREDITS.write(
    """
    INSERT INTO attributed_sales (organization_id, {columns})
    SELECT %(organization_id)s, it.sale_id, it.profile_id, it.text_id, it.touch, it.touched_at, it.window_hours,
           it.sent_at, it.day::date, it.origin_kind, it.origin_id, it.step, it.occurred_at, it.currency,
           it.gross_cents, it.net_cents, it.unmatched_cents::numeric
    FROM {rows}
    ON CONFLICT (organization_id, sale_id) DO UPDATE SET {assigned}
    """,
    assigned=_CREDITS.assign("EXCLUDED", without=("sale_id",)),
)


def read_credit(row: Sequence[object]) -> Credit:
    credit = Credit(*row)  # type: ignore[arg-type]  # the columns of the table
    return credit._replace(unmatched_cents=int(credit.unmatched_cents))


async def fetch_credits(tx: Tx, query: LiteralString, parameters: tuple[object, ...]) -> list[Credit]:
    return [read_credit(row) for row in await tx.fetch(fill(query, columns=names_of(Credit)), parameters)]


async def find_credits_of_customers(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[Credit]:
    return await fetch_credits(
        tx,
        "SELECT {columns} FROM attributed_sales WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])",
        (organization_id, list(profile_ids)),
    )


async def upsert_credits(tx: Tx, organization_id: UUID, changed: Sequence[Credit]) -> None:
    await tx.execute(_UPSERT_CREDITS, {"organization_id": organization_id, **_CREDITS.of(changed)})


async def delete_credits(tx: Tx, organization_id: UUID, sale_ids: Collection[UUID]) -> None:
    await tx.execute(
        "DELETE FROM attributed_sales WHERE organization_id = %s AND sale_id = ANY (%s::uuid[])",
        (organization_id, list(sale_ids)),
    )


async def detach_credits(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> None:
    """Remove the references to people and their texts from the credits; the amounts remain."""
    await tx.execute(
        """
        UPDATE attributed_sales SET profile_id = NULL, text_id = NULL
        WHERE organization_id = %s AND profile_id = ANY (%s::uuid[])
        """,
        (organization_id, list(profile_ids)),
    )


async def list_credits_of_person(
    tx: Tx, organization_id: UUID, profile_id: UUID, *, after: UUID, limit: int
) -> list[Credit]:
    return await fetch_credits(
        tx,
        """
        SELECT {columns} FROM attributed_sales
        WHERE organization_id = %s AND profile_id = %s AND sale_id > %s
        ORDER BY sale_id
        LIMIT %s
        """,
        (organization_id, profile_id, after, limit),
    )


async def is_computation_due(tx: Tx, organization_id: UUID, profile_id: UUID) -> bool:
    """Whether the credits of the customer wait to be computed."""
    rows = await tx.fetch(
        """
        SELECT FROM attribution_customers WHERE organization_id = %s AND profile_id = %s AND due_at IS NOT NULL
        """,
        (organization_id, profile_id),
    )
    return bool(rows)
