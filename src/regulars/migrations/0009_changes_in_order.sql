-- outside a transaction
-- Profiles and subscriptions in the order of their last change. Built beside the writers; a build that broke off is
-- begun anew.
DROP INDEX CONCURRENTLY IF EXISTS profiles_by_change;
CREATE INDEX CONCURRENTLY profiles_by_change ON profiles (organization_id, updated_at, id);
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_change;
CREATE INDEX CONCURRENTLY subscriptions_by_change ON subscriptions (organization_id, updated_at, id);
