-- outside a transaction
-- What a person decided about a collision; a new content under the same ticket opens it again. Each statement may be
-- run again after the file broke off.
ALTER TABLE ticket_collision_totals
    ADD COLUMN IF NOT EXISTS reviewed_at timestamptz,
    ADD COLUMN IF NOT EXISTS review text,
    ADD COLUMN IF NOT EXISTS note text,
    ADD COLUMN IF NOT EXISTS reviewed_by text;
DROP INDEX CONCURRENTLY IF EXISTS ticket_collision_totals_open;
CREATE INDEX CONCURRENTLY ticket_collision_totals_open
    ON ticket_collision_totals (organization_id, last_seen_at, sales_event_id) WHERE reviewed_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS ticket_collision_totals_reviewed;
CREATE INDEX CONCURRENTLY ticket_collision_totals_reviewed
    ON ticket_collision_totals (organization_id, last_seen_at, sales_event_id) WHERE reviewed_at IS NOT NULL;
