-- oldest server: 0080
-- oldest worker: 0080
-- A run may wait at a branch that cannot be judged. The new list holds the old one, so no row has to be looked at.

SET LOCAL lock_timeout = '5s';

ALTER TABLE journey_runs
    DROP CONSTRAINT journey_runs_waits_for_check,
    ADD CONSTRAINT journey_runs_waits_for_check CHECK (waits_for IN ('time', 'purchase', 'text', 'fault')) NOT VALID;
