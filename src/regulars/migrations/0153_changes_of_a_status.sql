-- oldest server: 0080
-- oldest worker: 0145
-- outside a transaction
-- Lists the changes of subscriptions with a status, however few they are. The statement may be run again after the file
-- broke off.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_status_and_change;
CREATE INDEX CONCURRENTLY subscriptions_by_status_and_change
    ON subscriptions (organization_id, status, updated_at, id);
