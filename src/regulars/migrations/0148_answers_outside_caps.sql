-- oldest server: 0080
-- oldest worker: 0145
-- A text outside the frequency caps is not limited by them and does not count in them: an answer to a customer's message.
ALTER TABLE texts ADD COLUMN is_outside_cap boolean NOT NULL DEFAULT false;
