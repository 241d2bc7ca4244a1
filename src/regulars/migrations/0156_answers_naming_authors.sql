-- oldest server: 0080
-- oldest worker: 0145
-- outside a transaction
-- Finds answers whose step holds the email address of their author, as servers of earlier releases store them. The worker
-- rewrites them. The statement may be run again after the file broke off.
DROP INDEX CONCURRENTLY IF EXISTS texts_naming_authors;
CREATE INDEX CONCURRENTLY texts_naming_authors ON texts (created_at, organization_id)
    WHERE origin_kind = 'answer' AND strpos(step, ' ') > 0;
