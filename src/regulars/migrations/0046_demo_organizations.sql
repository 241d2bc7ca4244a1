-- An organization that was filled with the demo has made-up customers with numbers that may be somebody's: it only
-- simulates. Those that a page filled are known; one that the command filled is marked when it is filled again.

SET LOCAL lock_timeout = '5s';

ALTER TABLE organizations ADD COLUMN is_demo boolean NOT NULL DEFAULT false;

UPDATE organizations SET is_demo = true WHERE id IN (SELECT organization_id FROM demo_runs);
