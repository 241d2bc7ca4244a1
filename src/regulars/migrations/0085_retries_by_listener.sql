-- oldest server: 0080
-- oldest worker: 0080
-- outside a transaction
-- What is due for one listener, however much waits for another. Built beside the writers; a build that broke off is
-- begun anew.
DROP INDEX CONCURRENTLY IF EXISTS outbox_retries_to_take;
CREATE INDEX CONCURRENTLY outbox_retries_to_take
    ON outbox_retries (organization_id, listener, due_at, id) WHERE due_at IS NOT NULL;
