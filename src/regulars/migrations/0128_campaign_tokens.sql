-- oldest server: 0080
-- oldest worker: 0125
-- Tokens of a rate and queued texts are limited together, so that a queue that was blocked adds nothing to the rate.

SET LOCAL lock_timeout = '5s';

-- How many texts were queued at `tokens_at`.
ALTER TABLE campaigns ADD COLUMN tokens_queued integer NOT NULL DEFAULT 0;
