"""Inserts the rows of a large organization for `analytics.py`, and has its queries as plain SQL."""

from uuid import UUID

from regulars.kit.db import Database

STORES = 40
PRODUCTS = 5_000
COLLECTIONS = 40
ORGANIZATION_ZONE = "Europe/Paris"
ROWS_AT_ONCE = 250_000

_STORES = """
INSERT INTO stores (organization_id, id, external_id, name, created_at, updated_at)
SELECT %(organization_id)s, md5('store ' || n)::uuid, 'S' || n, 'Store ' || n, now(), now()
FROM generate_series(1, %(stores)s) AS n
"""
_CUSTOMERS = """
INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
SELECT %(organization_id)s, md5('customer ' || n)::uuid, 'C' || n, now(), now()
FROM generate_series(%(first)s::integer, %(last)s) AS n
"""
# Ids ascend with time. The last sale is five minutes old, because the fill of the totals waits until sales have some
# age. One in twenty is a return, and a few customers buy most.
_SALES = """
INSERT INTO sales_events (organization_id, id, store_id, profile_id, occurred_at, created_at, total_amount_cents,
                          total_discount_cents, total_tax_cents, external_id, type, currency, source, line_items)
SELECT %(organization_id)s,
       (lpad(to_hex((1000 * extract(epoch FROM it.at))::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid,
       md5('store ' || 1 + floor(%(stores)s * pow(random(), 1.5)))::uuid,
       CASE WHEN n %% 3 >= %(anonymous_thirds)s
            THEN md5('customer ' || 1 + floor(%(customers)s * pow(random(), 2)))::uuid END,
       it.at, it.at, price * lines, CASE WHEN n %% 4 = 0 THEN price / 10 ELSE 0 END, price * lines / 6, 'T' || n,
       CASE WHEN n %% 20 = 0 THEN 'RETURN' ELSE 'PURCHASE' END, 'EUR', 'till',
       ('[' || array_to_string(ARRAY(SELECT CASE WHEN (n + line) %% 33 = 0
            THEN '{"external_id":"' || line || '","product":null'
            ELSE '{"external_id":"' || line || '","product":{"external_id":"P' || p || '","name":"Product ' || p
                 || '","properties":{"collection":"C' || p %% %(collections)s || '","size":"' || p %% 12 || '"}}' END
            || ',"quantity":1,"unit":null,"unit_price_cents":' || price || ',"total_price_cents":' || price
            || ',"discount_cents":0,"tax_cents":' || price / 6 || '}'
        FROM generate_series(1, lines) AS line
        CROSS JOIN LATERAL (SELECT (n * 7 + line * 131) %% %(products)s AS p) AS of_line), ',') || ']')::json
FROM generate_series(%(first)s::bigint, %(last)s) AS n
CROSS JOIN LATERAL (
    SELECT now() - make_interval(
               secs => 300 + (86400.0 * %(days)s - 360) * (1 - n::float / %(sales)s) + 60 * random()
           ) AS at,
           (500 + n * 37 %% 12000)::bigint AS price, 1 + n %% 3 AS lines
) AS it
"""


async def write_rows(
    database: Database,
    organization_id: UUID,
    *,
    customers: int,
    sales: int,
    days: int,
    anonymous_thirds: int = 1,
) -> None:
    given = {
        "organization_id": organization_id,
        "stores": STORES,
        "customers": customers,
        "sales": sales,
        "days": days,
        "anonymous_thirds": anonymous_thirds,
        "products": PRODUCTS,
        "collections": COLLECTIONS,
    }
    async with database.transaction() as tx:
        await tx.execute("UPDATE organizations SET time_zone = %s WHERE id = %s", (ORGANIZATION_ZONE, organization_id))
        await tx.execute(_STORES, given)
        await tx.execute("SELECT setseed(0.31)")
    for statement, count in ((_CUSTOMERS, customers), (_SALES, sales)):
        for first in range(1, count + 1, ROWS_AT_ONCE):
            async with database.transaction() as tx:
                last = min(first + ROWS_AT_ONCE - 1, count)
                await tx.execute(statement, {**given, "first": first, "last": last})
    await vacuum(database)


async def vacuum(database: Database) -> None:
    connection = await database.dial()
    async with connection:
        await connection.set_autocommit(True)
        # Autovacuum may be at work on a table, for longer than a request waits for a lock.
        await connection.execute("SET lock_timeout = '10min'")
        await connection.execute("VACUUM ANALYZE")


# By name of the query.
PLAIN = {
    "sales by day": """
        SELECT (occurred_at AT TIME ZONE %(zone)s)::date, currency, type, count(*), count(profile_id),
               sum(total_amount_cents), sum(total_discount_cents), sum(total_tax_cents)
        FROM sales_events WHERE organization_id = %(organization_id)s AND occurred_at >= %(two_years_ago)s
        GROUP BY 1, 2, 3
    """,
    "new and returning by month": """
        WITH firsts AS (
            SELECT profile_id, min(occurred_at AT TIME ZONE %(zone)s)::date AS first
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id IS NOT NULL AND type = 'PURCHASE'
            GROUP BY 1
        )
        SELECT date_trunc('month', s.occurred_at AT TIME ZONE %(zone)s) AS month,
               count(DISTINCT s.profile_id) FILTER (
                   WHERE date_trunc('month', f.first) = date_trunc('month', s.occurred_at AT TIME ZONE %(zone)s)),
               count(DISTINCT s.profile_id)
        FROM sales_events AS s JOIN firsts AS f ON f.profile_id = s.profile_id
        WHERE s.organization_id = %(organization_id)s AND s.type = 'PURCHASE' AND s.occurred_at >= %(year_ago)s
        GROUP BY 1
    """,
    "cohorts": """
        WITH months AS (
            SELECT profile_id, date_trunc('month', occurred_at AT TIME ZONE %(zone)s) AS month
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id IS NOT NULL AND type = 'PURCHASE'
            GROUP BY 1, 2
        ), cohorts AS (SELECT profile_id, month, min(month) OVER (PARTITION BY profile_id) AS cohort FROM months)
        SELECT cohort, month, count(*) FROM cohorts GROUP BY 1, 2
    """,
    "RFM": """
        WITH customers AS (
            SELECT profile_id, max(occurred_at) FILTER (WHERE type = 'PURCHASE') AS last,
                   count(DISTINCT (occurred_at AT TIME ZONE %(zone)s)::date) FILTER (WHERE type = 'PURCHASE') AS days,
                   sum(CASE type WHEN 'RETURN' THEN -total_amount_cents ELSE total_amount_cents END) AS net
            FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id IS NOT NULL AND currency = 'EUR'
              AND occurred_at >= %(two_years_ago)s
            GROUP BY 1
        ), ranked AS (
            SELECT ntile(5) OVER (ORDER BY last) AS r, ntile(5) OVER (ORDER BY days) AS f,
                   ntile(5) OVER (ORDER BY net) AS m, net FROM customers
        )
        SELECT r, f, m, count(*), sum(net) FROM ranked GROUP BY 1, 2, 3
    """,
    "products": """
        SELECT line.product ->> 'external_id', sum(CASE type WHEN 'RETURN' THEN -1 ELSE 1 END * total_price_cents),
               sum(CASE type WHEN 'RETURN' THEN -1 ELSE 1 END * quantity), count(DISTINCT s.id),
               count(DISTINCT s.profile_id)
        FROM sales_events AS s
        CROSS JOIN LATERAL json_to_recordset(s.line_items)
            AS line (product json, quantity numeric, total_price_cents bigint)
        WHERE s.organization_id = %(organization_id)s AND s.currency = 'EUR' AND s.occurred_at >= %(year_ago)s
        GROUP BY 1 ORDER BY 2 DESC LIMIT 1000
    """,
}
