-- oldest server: 0080
-- oldest worker: 0157
-- `regulars demo` writes a row too, so that a button and a command never load the same demo at once. A worker that takes
-- over from a command that was killed needs its plan. Rows without a last day are loaded up to the current day.
ALTER TABLE demo_runs ADD COLUMN seed bigint DEFAULT 1 NOT NULL;
ALTER TABLE demo_runs ADD COLUMN last_day date;
