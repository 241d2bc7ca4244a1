-- oldest server: 0080
-- oldest worker: 0080
-- A text whose journey is paused has no due time until the journey goes on, also when its sender puts it back.

SET LOCAL lock_timeout = '5s';

ALTER TABLE texts ADD COLUMN is_paused boolean NOT NULL DEFAULT false;
