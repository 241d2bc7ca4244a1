"""Add sales to the totals of their hour and of their day, per store and currency."""

from collections.abc import Sequence
from typing import Final, LiteralString
from uuid import UUID

from regulars.kit.arrays import Uuids
from regulars.kit.db import Tx
from regulars.sales.totals.progress import share_fill


async def add_sales(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> None:
    """Add new sales to the totals; callers pass each sale once. Sales with ids up to `fence` are skipped, because the
    fill, the job that counts older sales, counts them (`fill.py`)."""
    await share_fill(tx, organization_id)
    # The fence is read by a second statement, which sees what a recount has committed while the first one waited.
    await tx.execute(
        _ADD_SALES, {"organization_id": organization_id, "ids": Uuids([identifier.bytes for identifier in ids])}
    )


async def add_range(tx: Tx, organization_id: UUID, *, after: UUID, until: UUID) -> None:
    """Add every sale with an id in this range to the totals."""
    await tx.execute(_ADD_RANGE, {"organization_id": organization_id, "after": after, "until": until})


# Each statement has a sale `s` and its local time `l.at` in the middle. Quantities and taxes of a return may be written
# with either sign. Older releases did not store the number of units, so it is computed from the lines here. A line with
# a unit of measure (kg, m) counts as one unit.
_INSERT_SUMS: Final[LiteralString] = """
INSERT INTO sales_totals AS t
    (organization_id, is_hour, day, hour, store_id, currency, purchases, returns, identified, gross_cents,
     returned_cents, discount_cents, tax_cents, unit_millionths, returned_unit_millionths, lines)
SELECT %(organization_id)s::uuid, GROUPING(e.hour) = 0, e.day, coalesce(e.hour, 0), e.store_id, e.currency,
       count(*) FILTER (WHERE NOT e.is_return), count(*) FILTER (WHERE e.is_return),
       count(*) FILTER (WHERE e.is_identified),
       coalesce(sum(e.amount) FILTER (WHERE NOT e.is_return), 0),
       coalesce(sum(e.amount) FILTER (WHERE e.is_return), 0),
       coalesce(sum(e.discount) FILTER (WHERE NOT e.is_return), 0),
       coalesce(sum(CASE WHEN e.is_return THEN -abs(e.tax) ELSE e.tax END), 0),
       coalesce(sum(e.units) FILTER (WHERE NOT e.is_return), 0),
       coalesce(sum(abs(e.units)) FILTER (WHERE e.is_return), 0),
       coalesce(sum(e.lines) FILTER (WHERE NOT e.is_return), 0)
FROM (
    SELECT l.at::date AS day, extract(hour FROM l.at)::smallint AS hour,
    s.store_id, s.currency, s.type = 'RETURN' AS is_return,
    s.profile_id IS NOT NULL OR s.anonymised_at IS NOT NULL AS is_identified,
    s.total_amount_cents AS amount, s.total_discount_cents AS discount, s.total_tax_cents AS tax,
    coalesce(s.line_count, json_array_length(s.line_items)) AS lines,
    coalesce(s.unit_millionths, (
        SELECT sum(CASE WHEN line.unit IS NULL THEN round(line.quantity * 1000000)
                   ELSE sign(line.quantity) * 1000000 END)
        FROM json_to_recordset(s.line_items) AS line (quantity numeric, unit text)
    )) AS units
"""
# Totals are locked in the order of their key, so that two transactions cannot deadlock.
_ADD_TO_TOTALS: Final[LiteralString] = """
) AS e
GROUP BY GROUPING SETS ((e.day, e.store_id, e.currency), (e.day, e.store_id, e.currency, e.hour))
ORDER BY 2, 3, 4, 5, 6
ON CONFLICT (organization_id, is_hour, day, hour, store_id, currency) DO UPDATE
SET purchases = t.purchases + excluded.purchases,
    returns = t.returns + excluded.returns,
    identified = t.identified + excluded.identified,
    gross_cents = t.gross_cents + excluded.gross_cents,
    returned_cents = t.returned_cents + excluded.returned_cents,
    discount_cents = t.discount_cents + excluded.discount_cents,
    tax_cents = t.tax_cents + excluded.tax_cents,
    unit_millionths = t.unit_millionths + excluded.unit_millionths,
    returned_unit_millionths = t.returned_unit_millionths + excluded.returned_unit_millionths,
    lines = t.lines + excluded.lines
"""
# The list of ids is in a sub-select, where the planner does not see its length. If it saw that the list is short, a
# custom plan would seem cheaper than the generic one, and PostgreSQL would plan the statement each time, which takes
# longer than running it.
_ADD_SALES: Final[LiteralString] = (
    _INSERT_SUMS  # noqa: S608  # the parts are ours
    + """
FROM (SELECT fence, time_zone FROM sales_totals_fills WHERE organization_id = %(organization_id)s) AS f
CROSS JOIN unnest((SELECT %(ids)s::uuid[])) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT store_id, currency, type, occurred_at, profile_id, anonymised_at, total_amount_cents, total_discount_cents,
           total_tax_cents, unit_millionths, line_count, line_items
    FROM sales_events
    WHERE organization_id = %(organization_id)s AND id = wanted.id AND id > f.fence
    LIMIT 1
) AS s
CROSS JOIN LATERAL (SELECT s.occurred_at AT TIME ZONE f.time_zone AS at) AS l
"""
    + _ADD_TO_TOTALS
)
_ADD_RANGE: Final[LiteralString] = (
    _INSERT_SUMS  # noqa: S608  # the parts are ours
    + """
FROM sales_events AS s
CROSS JOIN (SELECT time_zone FROM sales_totals_fills WHERE organization_id = %(organization_id)s) AS f
CROSS JOIN LATERAL (SELECT s.occurred_at AT TIME ZONE f.time_zone AS at) AS l
WHERE s.organization_id = %(organization_id)s AND s.id > %(after)s AND s.id <= %(until)s
"""
    + _ADD_TO_TOTALS
)
