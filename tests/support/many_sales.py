"""Stores many sales by one statement, for tests and measurements of lists that read much."""

from typing import LiteralString

# The sale `n` of `count` has the time of its creation in its id, as sales have that the service records.
_INSERT: LiteralString = """
INSERT INTO sales_events
    (organization_id, id, store_id, profile_id, occurred_at, created_at, total_amount_cents, total_discount_cents,
     external_id, type, currency, line_items, metadata)
SELECT %(organization_id)s,
       (lpad(to_hex((extract(epoch FROM s.created_at) * 1000)::bigint), 12, '0') || '7'
        || lpad(to_hex(s.n %% 4096), 3, '0') || '8' || substr(md5(s.n::text), 1, 15))::uuid,
       s.store_id, s.profile_id, s.occurred_at, s.created_at, 1000, 0, %(name)s || s.n, s.type, s.currency, '[]',
       CASE WHEN %(width)s > 0 THEN to_json(repeat('x', %(width)s)) END
FROM (
    SELECT n, {sale} FROM generate_series(0, %(count)s - 1) AS numbers (n)
) AS s
ON CONFLICT DO NOTHING
"""


def insert_sales(sale: LiteralString) -> LiteralString:
    """The statement that inserts sales of which `sale` computes the columns `store_id`, `profile_id`, `occurred_at`,
    `created_at`, `type` and `currency` from their number `n`. Its parameters are `organization_id`, `name`, `count`
    and `width`, the number of characters of the metadata of each, and those of `sale`."""
    return _INSERT.replace("{sale}", sale)
