-- oldest server: 0080
-- oldest worker: 0145
-- outside a transaction
-- Finds the few runs that never wait for long, without reading those that wait for days. May be run again after the file
-- broke off.
DROP INDEX CONCURRENTLY IF EXISTS journey_runs_due_soon;
CREATE INDEX CONCURRENTLY journey_runs_due_soon ON journey_runs (due_at, organization_id)
    WHERE due_at IS NOT NULL AND (waits_for IS NULL OR waits_for = 'fault' OR attempts > 0);
