-- oldest server: 0080
-- oldest worker: 0080
-- The oldest releases that may run on a database with a migration, each named by the number of its newest migration.
ALTER TABLE migrations
    ADD COLUMN IF NOT EXISTS oldest_server integer,
    ADD COLUMN IF NOT EXISTS oldest_worker integer;
