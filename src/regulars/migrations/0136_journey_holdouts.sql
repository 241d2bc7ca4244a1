-- oldest server: 0080
-- oldest worker: 0136
-- Splits of journeys that hold customers out. Versions from now on salt the hash of a split with its step; runs of
-- earlier versions keep theirs. Who passed a split that holds out in a month for the first time, and on which side: an
-- older worker would store nothing.

ALTER TABLE journey_versions ADD COLUMN salts_splits boolean NOT NULL DEFAULT false;

CREATE TABLE journey_holdouts (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    step text NOT NULL,
    month date NOT NULL,
    profile_id uuid NOT NULL,
    passed_at timestamptz NOT NULL,
    first_day date NOT NULL,
    percent smallint NOT NULL,
    is_held_out boolean NOT NULL,
    PRIMARY KEY (organization_id, journey_id, step, month, profile_id)
);

CREATE INDEX journey_holdouts_by_profile ON journey_holdouts (organization_id, profile_id);

CREATE INDEX journey_holdouts_kept_since ON journey_holdouts (passed_at, organization_id);
