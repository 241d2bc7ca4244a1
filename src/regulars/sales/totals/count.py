"""Add sales to the totals of hours and days, and add up the hours of one day.

One statement reads the sales and adds up their money; another adds the sums to the totals. In between the lines are
decoded here, which takes a quarter of the time that PostgreSQL takes to read JSON.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from operator import add, attrgetter
from typing import Any, Final, LiteralString
from uuid import UUID

import msgspec
from psycopg.sql import SQL

from regulars.kit.arrays import Bigints, BinaryArray, Ids, Labels, Texts, Timestamps, Uuids
from regulars.kit.db import Tx
from regulars.sales.totals.model import RETURN, PerCurrency, Sums, add_up, one_sum
from regulars.sales.totals.tables import DAILY, Totals, find_time_zone, insert_fills_if_new

# A ticket is up to 2^53 cents, so the sums of a thousand fit a bigint.
SALES_MAX: Final = 1_000


async def add_sales(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    """Add new sales to the totals, but for those up to a fence, which its fill counts. Callers pass each sale once."""
    for start in range(0, len(ids), SALES_MAX):
        some = Uuids([identifier.bytes for identifier in ids[start : start + SALES_MAX]])
        given = {"organization_id": organization_id, "ids": some}
        rows = await tx.fetch(_NEW_SALES, given)
        if not rows:
            # The first sale of an organization finds no fill, which has the zone of the days.
            await insert_fills_if_new(tx, organization_id)
            rows = await tx.fetch(_NEW_SALES, given)
        await _add(tx, organization_id, rows)


async def add_range(tx: Tx, organization_id: UUID, totals: Totals, *, after: UUID, until: UUID) -> None:
    """Add the sales with an id in this range, of which there are at most `SALES_MAX`, to one of the tables."""
    given = {"organization_id": organization_id, "after": after, "until": until, "is_daily": totals is DAILY}
    await _add(tx, organization_id, await tx.fetch(_SALES_OF_RANGE, given))


async def sum_hours(
    tx: Tx, organization_id: UUID, day: date, *, store_ids: Sequence[UUID] | None = None
) -> list[PerCurrency]:
    """The 24 hours of one day on the clock of the organization's zone, from the sales themselves."""
    of_stores = SQL("") if store_ids is None else SQL("AND e.store_id = ANY(%(store_ids)s::uuid[])")
    rows = await tx.fetch(
        SQL(_SALES_OF_DAY).format(sums=SQL(_SUMS), of_stores=of_stores),
        {
            "organization_id": organization_id,
            "day": day,
            "time_zone": await find_time_zone(tx, organization_id),
            "store_ids": None if store_ids is None else list(store_ids),
        },
    )
    hours: list[list[tuple[str, Sums]]] = [[] for _ in range(24)]
    for hour, currency, kind, *sums, line_items in rows:
        hours[hour].append((currency, _sum_of_group(kind, list(map(int, sums)), line_items)))
    return [add_up(parts) for parts in hours]


_SUMS: Final[LiteralString] = """
count(*), count(*) FILTER (WHERE e.profile_id IS NOT NULL OR e.anonymised_at IS NOT NULL),
sum(e.total_amount_cents), sum(e.total_discount_cents),
coalesce(sum(CASE WHEN e.type = 'RETURN' THEN abs(e.total_tax_cents) ELSE e.total_tax_cents END), 0)
"""
_GROUPS: Final[LiteralString] = (
    """
SELECT date_trunc('hour', e.occurred_at, 'UTC'), (e.occurred_at AT TIME ZONE e.time_zone)::date,
       e.store_id, e.currency, e.type, e.in_hours, e.in_days,
"""
    + _SUMS
    + ", string_agg(e.line_items::text, ',') FILTER (WHERE e.in_days)"
)
# The lock makes a recount wait for the end of this transaction, and this statement for the end of a recount.
#
# The list stands in a sub-select, where the planner does not see how long it is: a plan for one that is known to be
# short looks cheaper than one for any, so it would be planned anew each time, which takes longer than running it.
_NEW_SALES: Final[LiteralString] = (
    """
WITH fill AS MATERIALIZED (
    SELECT fence, time_zone FROM daily_totals_fills WHERE organization_id = %(organization_id)s FOR KEY SHARE
)
"""  # noqa: S608  # the parts are ours
    + _GROUPS
    + """
FROM (
    SELECT s.*, fill.time_zone, s.id > fill.fence AS in_days, NOT EXISTS (
        SELECT FROM hourly_totals_fills AS f WHERE f.organization_id = %(organization_id)s AND s.id <= f.fence
    ) AS in_hours
    FROM fill
    CROSS JOIN unnest((SELECT %(ids)s::uuid[])) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT id, store_id, currency, type, occurred_at, profile_id, anonymised_at, total_amount_cents,
               total_discount_cents, total_tax_cents, line_items
        FROM sales_events
        WHERE organization_id = %(organization_id)s AND id = wanted.id
        LIMIT 1
    ) AS s
) AS e
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
)
_SALES_OF_RANGE: Final[LiteralString] = (
    _GROUPS  # noqa: S608  # the parts are ours
    + """
FROM (
    SELECT s.*, f.time_zone, %(is_daily)s::boolean AS in_days, NOT %(is_daily)s::boolean AS in_hours
    FROM sales_events AS s
    CROSS JOIN (
        SELECT coalesce(max(time_zone), 'UTC') AS time_zone
        FROM daily_totals_fills WHERE organization_id = %(organization_id)s
    ) AS f
    WHERE s.organization_id = %(organization_id)s AND s.id > %(after)s AND s.id <= %(until)s
) AS e
GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
)


_SALES_OF_DAY: Final[LiteralString] = """
SELECT extract(hour FROM e.occurred_at AT TIME ZONE %(time_zone)s)::int, e.currency, e.type, {sums},
       string_agg(e.line_items::text, ',')
FROM sales_events AS e
WHERE e.organization_id = %(organization_id)s
  AND e.occurred_at >= %(day)s::date::timestamp AT TIME ZONE %(time_zone)s
  AND e.occurred_at < (%(day)s::date + 1)::timestamp AT TIME ZONE %(time_zone)s {of_stores}
GROUP BY 1, 2, 3
"""


class _Line(msgspec.Struct, gc=False):
    quantity: int | float
    unit: str | None = None


_tickets = msgspec.json.Decoder(list[list[_Line]])


def count_lines(line_items: str, *, is_return: bool) -> tuple[Decimal, int]:
    """The units and the lines of tickets, whose line items are JSON arrays with commas between.

    A line that is measured (kg, m) is one unit. The quantities of a return may be written with either sign.
    """
    units: int | Decimal = 0
    lines = 0
    for ticket in _tickets.decode(f"[{line_items}]"):
        lines += len(ticket)
        of_ticket: int | Decimal = 0
        for line in ticket:
            quantity = line.quantity
            if line.unit is not None:
                of_ticket += 1 if quantity > 0 else -1
            elif isinstance(quantity, int):
                of_ticket += quantity
            else:
                of_ticket += Decimal(repr(quantity))
        units += -of_ticket if is_return and of_ticket < 0 else of_ticket
    return Decimal(units), lines


HourKey = tuple[datetime, UUID, str, str]
DayKey = tuple[date, UUID, str]


async def _add(tx: Tx, organization_id: UUID, rows: Iterable[Sequence[Any]]) -> None:
    """Add groups of sales to the hours and days that they belong to."""
    hours: dict[HourKey, list[int]] = {}
    days: dict[DayKey, Sums] = {}
    for hour, day, store_id, currency, kind, in_hours, in_days, *given, line_items in rows:
        sums = list(map(int, given))
        if in_hours:
            # An hour may be in two groups: it lies in two days where a zone differs from UTC by half hours.
            known = hours.setdefault((hour, store_id, currency, kind), [0, 0, 0, 0])
            known[:] = map(add, known, sums)
        if in_days:
            of_group = _sum_of_group(kind, sums, line_items)
            at = (day, store_id, currency)
            days[at] = days[at] + of_group if at in days else of_group
    if hours:
        await tx.execute(_ADD_TO_HOURS, {"organization_id": organization_id, **_hour_arrays(hours)})
    if days:
        await tx.execute(_ADD_TO_DAYS, {"organization_id": organization_id, **_day_arrays(days)})


def _sum_of_group(kind: str, sums: Sequence[int], line_items: str) -> Sums:
    """The sums of tickets of one type, from what `_SUMS` gave and their lines."""
    tickets, identified, amount_cents, discount_cents, tax_cents = sums
    units, lines = count_lines(line_items, is_return=kind == RETURN)
    return one_sum(
        kind,
        tickets=tickets,
        identified=identified,
        amount_cents=amount_cents,
        discount_cents=discount_cents,
        tax_cents=tax_cents,
        units=units,
        lines=lines,
    )


# Totals are locked in the order of their keys, so that two transactions cannot deadlock.
_ADD_TO_HOURS: Final[LiteralString] = """
INSERT INTO hourly_totals AS t
    (organization_id, hour, store_id, currency, type, tickets, identified_tickets, amount_cents, discount_cents)
SELECT %(organization_id)s::uuid, n.*
FROM unnest(%(hour)s::timestamptz[], %(store)s::uuid[], %(currency)s::text[], %(type)s::text[],
            %(tickets)s::bigint[], %(identified)s::bigint[], %(amount)s::bigint[], %(discount)s::bigint[]) AS n
ON CONFLICT (organization_id, hour, store_id, currency, type) DO UPDATE
SET tickets = t.tickets + excluded.tickets,
    identified_tickets = t.identified_tickets + excluded.identified_tickets,
    amount_cents = t.amount_cents + excluded.amount_cents,
    discount_cents = t.discount_cents + excluded.discount_cents
"""
_ADD_TO_DAYS: Final[LiteralString] = """
INSERT INTO daily_totals AS t
    (organization_id, day, store_id, currency, purchases, returns, identified, gross_cents, returned_cents,
     discount_cents, tax_cents, units, returned_units, lines)
SELECT %(organization_id)s::uuid, n.day::date, n.store_id, n.currency, n.purchases, n.returns, n.identified,
       n.gross_cents, n.returned_cents, n.discount_cents, n.tax_cents, n.units::numeric, n.returned_units::numeric,
       n.lines
FROM unnest(%(day)s::text[], %(store)s::uuid[], %(currency)s::text[],
            %(purchases)s::bigint[], %(returns)s::bigint[], %(identified)s::bigint[], %(gross_cents)s::bigint[],
            %(returned_cents)s::bigint[], %(discount_cents)s::bigint[], %(tax_cents)s::bigint[],
            %(units)s::text[], %(returned_units)s::text[], %(lines)s::bigint[])
    AS n (day, store_id, currency, purchases, returns, identified, gross_cents, returned_cents, discount_cents,
          tax_cents, units, returned_units, lines)
ON CONFLICT (organization_id, day, store_id, currency) DO UPDATE
SET purchases = t.purchases + excluded.purchases,
    returns = t.returns + excluded.returns,
    identified = t.identified + excluded.identified,
    gross_cents = t.gross_cents + excluded.gross_cents,
    returned_cents = t.returned_cents + excluded.returned_cents,
    discount_cents = t.discount_cents + excluded.discount_cents,
    tax_cents = t.tax_cents + excluded.tax_cents,
    units = t.units + excluded.units,
    returned_units = t.returned_units + excluded.returned_units,
    lines = t.lines + excluded.lines
"""
_COUNTS: Final = (
    "purchases", "returns", "identified", "gross_cents", "returned_cents", "discount_cents", "tax_cents", "lines",
)  # fmt: skip
_QUANTITIES: Final = ("units", "returned_units")


def _hour_arrays(hours: Mapping[HourKey, Sequence[int]]) -> dict[str, BinaryArray]:
    keys = sorted(hours)
    sums = [hours[key] for key in keys]
    return {
        "hour": Timestamps([key[0] for key in keys]),
        "store": Ids([key[1] for key in keys]),
        "currency": Labels([key[2] for key in keys]),
        "type": Labels([key[3] for key in keys]),
        "tickets": Bigints([one[0] for one in sums]),
        "identified": Bigints([one[1] for one in sums]),
        "amount": Bigints([one[2] for one in sums]),
        "discount": Bigints([one[3] for one in sums]),
    }


def _day_arrays(days: Mapping[DayKey, Sums]) -> dict[str, BinaryArray]:
    keys = sorted(days)
    sums = [days[key] for key in keys]
    return {
        "day": Texts([key[0].isoformat() for key in keys]),
        "store": Ids([key[1] for key in keys]),
        "currency": Labels([key[2] for key in keys]),
        **{name: Bigints(map(attrgetter(name), sums)) for name in _COUNTS},
        **{name: Texts([str(getattr(one, name)) for one in sums]) for name in _QUANTITIES},
    }
