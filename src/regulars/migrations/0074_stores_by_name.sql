-- outside a transaction
-- Stores by what people call them. Built beside the writers; a build that broke off is begun anew.
DROP INDEX CONCURRENTLY IF EXISTS stores_by_name;
CREATE INDEX CONCURRENTLY stores_by_name
    ON stores (organization_id, (left(lower(COALESCE(name, external_id)), 100)) COLLATE "C", id);
