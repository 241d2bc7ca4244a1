-- Facts become due at a time, a listener that failed has a row of its own, and interest is a row.

-- Writers of the release before name no due time: theirs is now, and `not_before` still holds them back. The table
-- holds only what waits, so the update and the index take no longer than a drain of it.
ALTER TABLE outbox ADD COLUMN due_at timestamptz NOT NULL DEFAULT now();
UPDATE outbox SET due_at = COALESCE(not_before, created_at);

-- A fact that one listener failed on. Without a due time it is parked: it stays for a person to look at.
CREATE TABLE outbox_retries (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    -- Its stable name; `*` for a row that was parked when all listeners of a fact still shared one.
    listener text NOT NULL,
    topic text NOT NULL,
    payload json NOT NULL,
    created_at timestamptz NOT NULL,
    attempts integer NOT NULL,
    due_at timestamptz,
    PRIMARY KEY (organization_id, id, listener)
);

INSERT INTO outbox_retries (organization_id, id, listener, topic, payload, created_at, attempts, due_at)
SELECT organization_id, id, '*', topic, payload, created_at, attempts, NULL FROM outbox WHERE not_before = 'infinity';
DELETE FROM outbox WHERE not_before = 'infinity';

CREATE INDEX outbox_due ON outbox (due_at, organization_id);
CREATE INDEX outbox_retries_due ON outbox_retries (due_at, organization_id) WHERE due_at IS NOT NULL;

-- Rows come and go by the thousand, so the dead ones are cleared as soon as there are some.
ALTER TABLE outbox SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000
);
ALTER TABLE outbox_retries SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);

-- Which facts somebody above waits for; a writer of such a fact records it only while there is a row.
CREATE TABLE interests (
    organization_id uuid NOT NULL,
    topic text NOT NULL,
    needed_by text NOT NULL,
    PRIMARY KEY (organization_id, topic, needed_by)
);
