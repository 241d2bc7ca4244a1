-- oldest server: 0080
-- oldest worker: 0145
-- outside a transaction
-- B-trees store equal keys once, and a further entry takes 6 bytes. So the index by outcome has the block instead of the
-- profile id, and lists sort the rows of a block. The index by number has no time: statements read the few texts of a
-- number, those of older servers too. Each statement may be run again after the file broke off.
DROP INDEX CONCURRENTLY IF EXISTS campaign_recipients_in_blocks;
CREATE INDEX CONCURRENTLY campaign_recipients_in_blocks
    ON campaign_recipients (organization_id, campaign_id, outcome, block);
DROP INDEX CONCURRENTLY IF EXISTS campaign_recipients_by_outcome;
DROP INDEX CONCURRENTLY IF EXISTS texts_of_number;
CREATE INDEX CONCURRENTLY texts_of_number ON texts (organization_id, number_hash);
DROP INDEX CONCURRENTLY IF EXISTS texts_by_number;
