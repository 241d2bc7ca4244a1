-- oldest server: 0080
-- oldest worker: 0080
-- outside a transaction
-- How many runs of a journey wait at a branch that cannot be judged. Built beside the writers; a build that broke off is
-- begun anew.
DROP INDEX CONCURRENTLY IF EXISTS journey_runs_at_fault;
CREATE INDEX CONCURRENTLY journey_runs_at_fault ON journey_runs (organization_id, journey_id)
    WHERE waits_for = 'fault';
