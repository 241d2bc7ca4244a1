-- oldest server: 0080
-- oldest worker: 0110
-- outside a transaction
-- The first due texts of an organization by priority. Takes the place of texts_due_here: a worker of the release before
-- reads texts_due instead until it is replaced. Built beside the writers; a build that broke off is begun anew.
DROP INDEX CONCURRENTLY IF EXISTS texts_due_by_priority;
CREATE INDEX CONCURRENTLY texts_due_by_priority
    ON texts (organization_id, priority, due_at, id) WHERE due_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS texts_due_here;
