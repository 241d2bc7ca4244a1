-- oldest server: 0080
-- oldest worker: 0161
-- outside a transaction
-- The rows that are made due when a pause or a hold ends. The statements may be run again after the file broke off.
DROP INDEX CONCURRENTLY IF EXISTS texts_set_aside;
CREATE INDEX CONCURRENTLY texts_set_aside ON texts (organization_id, held_by, id) WHERE held_by IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS journey_runs_set_aside;
CREATE INDEX CONCURRENTLY journey_runs_set_aside ON journey_runs (organization_id, journey_id, id)
    WHERE held_due_at IS NOT NULL;
