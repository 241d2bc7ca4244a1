-- outside a transaction
-- Lists of runs by state and by the step they stand at. Built beside the writers; a build that broke off is begun anew.
DROP INDEX CONCURRENTLY IF EXISTS journey_runs_by_state;
CREATE INDEX CONCURRENTLY journey_runs_by_state ON journey_runs (organization_id, journey_id, state, id);
DROP INDEX CONCURRENTLY IF EXISTS journey_runs_at_step;
CREATE INDEX CONCURRENTLY journey_runs_at_step ON journey_runs (organization_id, journey_id, step, id)
    WHERE state <> 'ended';
DROP INDEX CONCURRENTLY IF EXISTS journey_runs_parked;
CREATE INDEX CONCURRENTLY journey_runs_parked ON journey_runs (organization_id, journey_id, id) WHERE state = 'parked';
