"""A large organization, made in SQL: what is slow with a million customers shows in the plans with forty thousand."""

import re
from uuid import UUID

CUSTOMERS = 40_000

_STATEMENTS = (
    """
    INSERT INTO stores (organization_id, id, external_id, name, created_at, updated_at)
    SELECT %(organization)s, ID(n), 'S-' || n, 'Store ' || n, now(), now()
    FROM generate_series(1, 30) AS n
    """,
    """
    INSERT INTO profiles (organization_id, id, external_id, phone_number, phone_reachable, first_name, last_name,
                          created_at, updated_at)
    SELECT %(organization)s, ID(n), 'C-' || n, '+336' || lpad(n::text, 8, '0'), true,
           'First' || n, 'Last' || n %% 5000, now(), now()
    FROM generate_series(1, 40000) AS n
    """,
    """
    INSERT INTO sales_events (organization_id, id, store_id, profile_id, occurred_at, created_at, total_amount_cents,
                              total_discount_cents, external_id, type, currency, line_items)
    SELECT %(organization)s, ID(n), ID(1 + n %% 30),
           CASE WHEN n %% 3 = 0 THEN NULL ELSE ID(1 + n %% 40000) END,
           now() - n * interval '5 minutes', now(), 100 + n %% 5000, 0, 'T-' || n,
           CASE WHEN n %% 20 = 0 THEN 'RETURN' ELSE 'PURCHASE' END, 'EUR', '[{"quantity":1,"total_price_cents":1}]'
    FROM generate_series(1, 120000) AS n
    """,
    """
    INSERT INTO sales_totals (organization_id, is_hour, day, hour, store_id, currency, purchases, returns, identified,
                              gross_cents, returned_cents, discount_cents, tax_cents, unit_millionths,
                              returned_unit_millionths, lines)
    SELECT %(organization)s, GROUPING(hour) = 0, day, coalesce(hour, 0), store_id, currency,
           count(*) FILTER (WHERE type = 'PURCHASE'), count(*) FILTER (WHERE type = 'RETURN'), count(profile_id),
           coalesce(sum(total_amount_cents) FILTER (WHERE type = 'PURCHASE'), 0),
           coalesce(sum(total_amount_cents) FILTER (WHERE type = 'RETURN'), 0), 0, 0, count(*) * 1000000, 0, count(*)
    FROM sales_events
    CROSS JOIN LATERAL (SELECT occurred_at::date AS day, extract(hour FROM occurred_at)::smallint AS hour) AS l
    WHERE organization_id = %(organization)s
    GROUP BY GROUPING SETS ((day, store_id, currency), (day, store_id, currency, hour))
    """,
    """
    INSERT INTO subscriptions (organization_id, id, number_hash, phone_number, profile_id, status, consent_source,
                               consented_at, latest_opt_in_at, entry_count, last_hash, created_at, updated_at)
    SELECT %(organization)s, ID(n), sha256(n::text::bytea), '+336' || lpad(n::text, 8, '0'),
           ID(n), 'SUBSCRIBED', 'WEBSITE', now(), now(), 1, ''::bytea, now(), now()
    FROM generate_series(1, 40000) AS n
    """,
    """
    INSERT INTO consent_ledger (organization_id, subscription_id, sequence, kind, outcome, effective_at, received_at,
                                commitment, previous_hash, hash)
    SELECT organization_id, id, 1, 'OPT_IN', 'created', created_at, created_at, ''::bytea, ''::bytea, ''::bytea
    FROM subscriptions WHERE organization_id = %(organization)s
    """,
    """
    INSERT INTO consent_payloads (organization_id, subscription_id, sequence, profile_id, salt, payload)
    SELECT organization_id, id, 1, profile_id, ''::bytea, '{"kind":"OPT_IN"}'
    FROM subscriptions WHERE organization_id = %(organization)s
    """,
    """
    INSERT INTO ticket_collision_totals (organization_id, sales_event_id, times_seen, last_seen_at)
    SELECT organization_id, id, 1, now() FROM sales_events WHERE organization_id = %(organization)s
    """,
)
# ID(n) stands for an id that sorts by its number, with a time in it as every id has one.
STATEMENTS = [
    re.sub(r"ID\(([^()]*)\)", r"('01900000-0000-7000-8000-' || lpad(to_hex(\1), 12, '0'))::uuid", text)
    for text in _STATEMENTS
]
LARGE = {
    "profiles", "sales_events", "sales_totals", "subscriptions", "consent_ledger", "consent_payloads",
    "ticket_collision_totals",
}  # fmt: skip


def identifier(number: int) -> UUID:
    """The id of the so manieth store, customer, ticket or number."""
    return UUID(f"01900000-0000-7000-8000-{number:012x}")
