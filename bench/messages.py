"""Inserts millions of texts, replies and deliveries inside the database."""

from uuid import UUID

from bulk import Connection, without_indexes

MESSAGES = ("texts", "replies", "simulated_texts", "webhook_deliveries", "webhook_messages")
ENDPOINTS = 4
REPLIES_EVERY = 20

# Ids in the order of time, two seconds apart, ending now.
ID = """
CREATE OR REPLACE FUNCTION pg_temp.id_of(n bigint, most bigint) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT pg_temp.id_at((extract(epoch FROM now()) * 1000)::bigint - (most - n) * 2000)
$$
"""
# Numbers the phone numbers of the organization, so that each gets texts.
NUMBERS = """
CREATE TEMP TABLE numbers AS
SELECT row_number() OVER () - 1 AS place, number_hash, phone_number, profile_id FROM subscriptions
WHERE organization_id = %(organization_id)s AND phone_number IS NOT NULL AND profile_id IS NOT NULL LIMIT 100000
"""
TEXTS = """
INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, profile_id, number_hash, phone_number, body,
                   parts, state, reason, expires_at, created_at, claimed_at, ended_at, provider)
SELECT %(organization_id)s, pg_temp.id_of(n, %(many)s), 'journey', pg_temp.id_of(n, %(many)s), 'send', m.profile_id,
       m.number_hash, m.phone_number, 'Hello, this is text number ' || n, 1,
       CASE WHEN n %% 10 < 6 THEN 'delivered' WHEN n %% 10 < 9 THEN 'skipped' WHEN n %% 1000 = 9 THEN 'unknown'
            ELSE 'failed' END,
       CASE WHEN n %% 10 < 6 THEN NULL WHEN n %% 1000 = 6 THEN 'too_long' WHEN n %% 10 < 9 THEN 'cap'
            ELSE 'refused 30003: unreachable' END,
       now(), now() - (%(many)s - n) * interval '2 seconds', now() - (%(many)s - n) * interval '2 seconds',
       now() - (%(many)s - n) * interval '2 seconds', 'simulator'
FROM generate_series(1, %(many)s) AS n JOIN numbers m ON m.place = n %% (SELECT count(*) FROM numbers)
"""
REPLIES = """
INSERT INTO replies (organization_id, id, provider, provider_id, number_hash, phone_number, profile_id, body, meaning,
                     decided, received_at)
SELECT %(organization_id)s, pg_temp.id_of(n, %(many)s), 'simulator', 'r' || n, m.number_hash, m.phone_number,
       m.profile_id, 'Reply ' || n,
       CASE n %% 3 WHEN 0 THEN 'stop' WHEN 1 THEN 'perhaps_stop' ELSE 'other' END,
       CASE WHEN n %% 401 = 1 THEN NULL ELSE 'answered' END, now() - (%(many)s - n) * interval '2 seconds'
FROM generate_series(1, %(many)s, %(every)s) AS n JOIN numbers m ON m.place = n %% (SELECT count(*) FROM numbers)
"""
SIMULATED = """
INSERT INTO simulated_texts (organization_id, id, text_id, phone_number, body, sent_at)
SELECT organization_id, id, id, phone_number, body, created_at FROM texts
WHERE organization_id = %(organization_id)s AND get_byte(uuid_send(id), 15) < 25
"""
ENDPOINT = """
INSERT INTO webhook_endpoints (organization_id, id, url, description, event_types, secret, state, created_at,
                               updated_at, failures, failing_since, last_success_at)
SELECT %(organization_id)s, gen_random_uuid(), 'https://receiver-' || n || '.example/hook', 'Number ' || n,
       ARRAY['profile.*', 'subscription.*'], '\\x00', 'enabled', now(), now(), n %% 2,
       CASE WHEN n %% 2 = 1 THEN now() END, now()
FROM generate_series(1, %(endpoints)s) AS n
"""
EVENTS = """
INSERT INTO webhook_messages (organization_id, id, type, body, created_at)
SELECT %(organization_id)s, pg_temp.id_of(n, %(many)s),
       CASE WHEN n %% 5000 = 0 THEN 'webhook.ping' WHEN n %% 2 = 0 THEN 'profile.updated'
            ELSE 'subscription.created' END,
       '{"type":"profile.updated","timestamp":"2026-03-02T09:30:00.000Z","data":{}}',
       now() - (%(many)s - n) * interval '2 seconds'
FROM generate_series(1, %(many)s) AS n
"""
DELIVERIES = """
INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, message_id, state, attempts, due_at, created_at,
                                attempted_at, duration_ms, answer_status)
SELECT m.organization_id, m.id, e.id, m.id,
       CASE WHEN b < 230 THEN 'delivered' WHEN b < 240 THEN 'failed' ELSE 'pending' END, 1,
       CASE WHEN b >= 240 THEN now() + interval '1 day' END, m.created_at, m.created_at, 20,
       CASE WHEN b < 230 THEN 204 ELSE 503 END
FROM webhook_messages m
CROSS JOIN LATERAL (SELECT get_byte(uuid_send(m.id), 15) AS b) AS chance
JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM webhook_endpoints
      WHERE organization_id = %(organization_id)s) AS e ON e.n = get_byte(uuid_send(m.id), 14) %% %(endpoints)s
WHERE m.organization_id = %(organization_id)s
"""
ATTEMPTS = """
INSERT INTO webhook_attempts (organization_id, delivery_id, number, attempted_at, duration_ms, status, error, answer)
SELECT organization_id, id, 1, created_at, 20, 503, 'The response was 503.', 'Maintenance' FROM webhook_deliveries
WHERE organization_id = %(organization_id)s AND state <> 'delivered'
"""


def fill_messages(connection: Connection, organization_id: UUID, many: int) -> None:
    values = {"organization_id": organization_id, "many": many, "every": REPLIES_EVERY, "endpoints": ENDPOINTS}
    with without_indexes(connection, (*MESSAGES, "webhook_attempts")):
        for statement in (ID, NUMBERS, TEXTS, REPLIES, SIMULATED, ENDPOINT, EVENTS, DELIVERIES, ATTEMPTS):
            connection.execute(statement, values)
