-- outside a transaction
-- Only whoever asks by number says that it is one, so the planner does not take this index for a way to find a profile
-- in an organization that it knows nothing of. Built beside the writers; a build that broke off is begun anew.
DROP INDEX CONCURRENTLY IF EXISTS segment_customers_by_number;
CREATE UNIQUE INDEX CONCURRENTLY segment_customers_by_number
    ON segment_customers (organization_id, epoch, number) WHERE number >= 0;
