"""Inserts the remaining rows of a large organization: keys, their request log, collisions, catalogs, an audit log."""

from uuid import UUID

from bulk import Connection

KEYS = """
INSERT INTO api_keys (id, organization_id, name, hint, key_hash, created_at, last_used_at, permission)
SELECT gen_random_uuid(), %(organization_id)s, 'Till ' || n, 'rgl_x', sha256(gen_random_uuid()::text::bytea), now(),
       now(), CASE WHEN n %% 5 = 0 THEN 'full' ELSE 'ingest' END
FROM generate_series(1, 20) AS n
"""
# The retention: the last thousand requests of each key.
REQUESTS = """
INSERT INTO request_log (organization_id, id, api_key_id, answered_at, method, target, status, code, duration_us,
                         request_id, problem)
SELECT %(organization_id)s,
       pg_temp.id_at((extract(epoch FROM now()) * 1000)::bigint - n::bigint * 60000), k.id,
       now() - n * interval '1 minute', 'POST', '/v1/sales-events', CASE WHEN n %% 20 = 0 THEN 422 ELSE 201 END,
       CASE WHEN n %% 20 = 0 THEN 'VALIDATION_FAILED' END, 9000, md5(n::text || k.id),
       CASE WHEN n %% 20 = 0 THEN '{"title": "The request is not valid."}'::json END
FROM api_keys k CROSS JOIN generate_series(1, 1000) AS n WHERE k.organization_id = %(organization_id)s
"""
COUNTS = """
INSERT INTO request_counts (organization_id, hour, api_key_id, answers, refusals)
SELECT %(organization_id)s, date_trunc('hour', now()) - n * interval '1 hour', id, 60, 3
FROM api_keys CROSS JOIN generate_series(0, 167) AS n WHERE organization_id = %(organization_id)s
"""
COLLISIONS = """
INSERT INTO ticket_collisions (organization_id, sales_event_id, content_hash, attempt, first_seen_at, last_seen_at,
                               times_seen)
SELECT organization_id, id, sha256(id::text::bytea), json_build_object('total_amount_cents', 1), now(), now(), 2
FROM sales_events WHERE organization_id = %(organization_id)s ORDER BY id DESC LIMIT 10000
"""
COLLISION_TOTALS = """
INSERT INTO ticket_collision_totals (organization_id, sales_event_id, times_seen, last_seen_at)
SELECT organization_id, sales_event_id, times_seen, last_seen_at FROM ticket_collisions
WHERE organization_id = %(organization_id)s
"""
PROPERTIES = """
INSERT INTO product_properties (organization_id, key, type, created_at, updated_at)
SELECT %(organization_id)s, 'property_' || n, 'text', now(), now() FROM generate_series(1, 60) AS n
ON CONFLICT DO NOTHING
"""
AUDIT = """
INSERT INTO audit_log (organization_id, id, at, actor, address, act, subject, after)
SELECT %(organization_id)s, pg_temp.id_at((extract(epoch FROM now()) * 1000)::bigint - n::bigint * 60000),
       now() - n * interval '1 minute', 'Owner', '127.0.0.1', 'key.create', 'key ' || n, '{"name": "Till"}'::json
FROM generate_series(1, %(audit_entries)s) AS n
"""


def fill_remaining_rows(connection: Connection, organization_id: UUID, *, audit_entries: int) -> None:
    values = {"organization_id": organization_id, "audit_entries": audit_entries}
    for statement in (KEYS, REQUESTS, COUNTS, COLLISIONS, COLLISION_TOTALS, PROPERTIES, AUDIT):
        connection.execute(statement, values)
