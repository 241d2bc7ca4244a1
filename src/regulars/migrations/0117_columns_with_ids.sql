-- oldest server: 0080
-- oldest worker: 0117
-- outside a transaction
-- Columns of format 3 have the ids of profiles in their blocks, and a build is due by a column of its own: a worker of the
-- release before, which does not look at the format, never adds to one. Every organization is due at once, so that its
-- columns are built again. Each statement may be run again after the file broke off.
ALTER TABLE segment_columns ADD COLUMN IF NOT EXISTS build_at timestamptz DEFAULT now();
DROP INDEX CONCURRENTLY IF EXISTS segment_columns_to_build;
CREATE INDEX CONCURRENTLY segment_columns_to_build
    ON segment_columns (build_at, organization_id) WHERE build_at IS NOT NULL;
-- Profiles by number: read only of columns of format 2, which are built again. Until then a page of members takes an older
-- server longer.
DROP INDEX CONCURRENTLY IF EXISTS segment_customers_by_number;
