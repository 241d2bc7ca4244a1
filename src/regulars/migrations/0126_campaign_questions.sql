-- oldest server: 0080
-- oldest worker: 0125
-- What a campaign found when it started, where that is more than was confirmed: recipients, and cost by currency.

ALTER TABLE campaigns ADD COLUMN question json;
