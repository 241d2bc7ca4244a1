-- outside a transaction
-- Numbers that are known only as ones that nobody may text. Built beside the writers; a build that broke off is begun
-- anew.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_forbidden;
CREATE INDEX CONCURRENTLY subscriptions_forbidden
    ON subscriptions (organization_id, number_hash)
    WHERE status = 'UNSUBSCRIBED' AND (phone_number IS NULL OR latest_opt_in_at IS NULL);
