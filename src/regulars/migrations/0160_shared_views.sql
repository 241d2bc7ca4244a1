-- oldest server: 0080
-- oldest worker: 0080
-- Views that a user shares in the organization.

ALTER TABLE saved_views ADD COLUMN is_shared boolean NOT NULL DEFAULT false;
