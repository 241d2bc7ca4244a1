-- Headers that belong to an answer are kept with it and replayed: `name: value`, one a line; null for none.
ALTER TABLE idempotency_keys ADD COLUMN headers text;
