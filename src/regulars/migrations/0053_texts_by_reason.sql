-- outside a transaction
-- Texts by why they were skipped or failed. Built beside the writers; a build that broke off is begun anew.
DROP INDEX CONCURRENTLY IF EXISTS texts_by_reason;
CREATE INDEX CONCURRENTLY texts_by_reason
    ON texts (organization_id, substring(reason FROM '^[a-z_]+'), id)
    WHERE reason IS NOT NULL;
