-- oldest server: 0080
-- oldest worker: 0080
-- The secret of an organization, sealed with the key outside the database. The plain one stays for older releases until
-- `regulars vault seal` empties it; that command also raises the two numbers above in the table of migrations.
ALTER TABLE organizations ADD COLUMN sealed_secret bytea;
ALTER TABLE organizations ALTER COLUMN secret DROP NOT NULL;
-- Since when no organization has a plain secret; NULL while they do.
ALTER TABLE vault_key ADD COLUMN sealed_at timestamptz;
