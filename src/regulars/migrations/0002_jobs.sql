-- The job tables belong to Procrastinate and are made by the schema that its installed release ships.
-- This was written for a release whose newest migration is 03.04.00_50_post_add_retry_failed_job_procedure; a test
-- fails when an upgrade of the library brings a newer one, which then needs a migration of ours that includes it.

-- include: procrastinate/sql/schema.sql
