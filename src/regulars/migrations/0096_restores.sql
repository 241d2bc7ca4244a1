-- oldest server: 0080
-- oldest worker: 0080
-- What a restore leaves to be done before anything is served. `regulars restore` runs this file in the transaction of
-- the backup itself, which may be of a release that does not have these tables: hence IF NOT EXISTS.
CREATE TABLE IF NOT EXISTS restore_marker (
    -- There is one, or none when nothing is left to be done.
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    restored_at timestamptz NOT NULL,
    -- API keys that were revoked in the database that was replaced.
    revoked_keys uuid[] NOT NULL,
    -- Whether every key of the backup is to be revoked.
    revokes_all_keys boolean NOT NULL
);
CREATE TABLE IF NOT EXISTS erasures_to_replay (
    organization_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    number_hashes bytea[] NOT NULL,
    erased_at timestamptz NOT NULL,
    -- False: the process ended between the log and the commit, so nobody knows whether the person was erased.
    is_certain boolean NOT NULL,
    PRIMARY KEY (organization_id, profile_id)
);
