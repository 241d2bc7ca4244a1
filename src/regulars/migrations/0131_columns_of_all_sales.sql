-- oldest server: 0080
-- oldest worker: 0125
-- Columns of format 4 have the sales without a customer too, as runs of a kind of their own. Every organization is due, so
-- that its columns are built again.

SET LOCAL lock_timeout = '5s';

ALTER TABLE segment_runs
    DROP CONSTRAINT segment_runs_kind_check,
    ADD CONSTRAINT segment_runs_kind_check CHECK (kind IN ('sales', 'anonymous', 'patch', 'block')) NOT VALID;

-- When the phase of the build began, and when the pages of Analyse were last opened.
ALTER TABLE segment_columns ADD COLUMN phase_at timestamptz, ADD COLUMN used_at timestamptz;

UPDATE segment_columns SET build_at = now() WHERE state <> 'ended';
