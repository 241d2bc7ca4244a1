-- oldest server: 0080
-- oldest worker: 0080
-- Who was erased, by ids and hashes that tell nothing about them: what `restore --force` reads before it replaces a
-- database, so that the backup brings nobody back.
CREATE TABLE erasures (
    organization_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    -- Of the numbers that the erasure put on the list not to be contacted.
    number_hashes bytea[] NOT NULL,
    erased_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, profile_id)
);
