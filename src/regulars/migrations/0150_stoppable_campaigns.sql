-- oldest server: 0080
-- oldest worker: 0145
-- outside a transaction
-- For the home page, which names campaigns that need a person: those that are under way, however many others there are.
-- The statement may be run again after the file broke off.
DROP INDEX CONCURRENTLY IF EXISTS campaigns_stoppable;
CREATE INDEX CONCURRENTLY campaigns_stoppable ON campaigns (organization_id, id)
    WHERE state IN ('scheduled', 'preparing', 'sending', 'paused');
