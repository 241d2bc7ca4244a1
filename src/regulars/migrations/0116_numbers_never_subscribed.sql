-- oldest server: 0080
-- oldest worker: 0110
-- outside a transaction
-- Numbers that are known only as ones that nobody may text: no opt-in of theirs ever took effect. Takes the place of
-- subscriptions_forbidden, which the release before still reads. Built beside the writers; a build that broke off is begun
-- anew.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_never_subscribed;
CREATE INDEX CONCURRENTLY subscriptions_never_subscribed
    ON subscriptions (organization_id, number_hash)
    WHERE status = 'UNSUBSCRIBED' AND (phone_number IS NULL OR consented_at IS NULL);
