-- The job tables belong to Procrastinate. Its schema is kept as it was when this was written, so that a new database
-- equals one that has been through every upgrade: its newest migration then was
-- 03.04.00_50_post_add_retry_failed_job_procedure. A test fails when an installed release brings another schema, which
-- then needs a migration of ours.

-- include: vendor/procrastinate/schema.sql
