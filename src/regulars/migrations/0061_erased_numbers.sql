-- outside a transaction
-- Numbers that are held only so that nobody texts them. Built beside the writers; a build that broke off is begun anew.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_erased;
CREATE INDEX CONCURRENTLY subscriptions_erased
    ON subscriptions (organization_id, number_hash) WHERE phone_number IS NULL;
