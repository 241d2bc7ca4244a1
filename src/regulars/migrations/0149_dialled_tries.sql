-- oldest server: 0080
-- oldest worker: 0145
-- How often a text was handed to the provider since it was queued; `attempts` counts claims, of which some are not dialled.
ALTER TABLE texts ADD COLUMN tries integer NOT NULL DEFAULT 0;
