-- oldest server: 0080
-- oldest worker: 0110
-- Which texts leave first: 0 replies to STOP and HELP, 1 texts of a person or a journey, 2 texts of a campaign. Rows of
-- an older server get the middle one.

SET LOCAL lock_timeout = '5s';

ALTER TABLE texts ADD COLUMN priority smallint NOT NULL DEFAULT 1;
