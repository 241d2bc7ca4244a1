-- oldest server: 0080
-- oldest worker: 0145
-- The user who wrote an answer to a customer; NULL for every other text, and if the author is not known.
ALTER TABLE texts ADD COLUMN author_id uuid;
