-- outside a transaction
-- Customers by the beginning of either name. Built beside the writers; a build that broke off is begun anew.
DROP INDEX CONCURRENTLY IF EXISTS profiles_by_first_name;
CREATE INDEX CONCURRENTLY profiles_by_first_name
    ON profiles (organization_id, (folded_name(first_name, last_name) COLLATE "C"), id)
    WHERE first_name IS NOT NULL OR last_name IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS profiles_by_last_name;
CREATE INDEX CONCURRENTLY profiles_by_last_name
    ON profiles (organization_id, (folded_name(last_name, first_name) COLLATE "C"), id)
    WHERE first_name IS NOT NULL AND last_name IS NOT NULL;
