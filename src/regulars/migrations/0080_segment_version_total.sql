-- How many customers a version had when it was first counted; versions from before have none.
ALTER TABLE segment_versions ADD COLUMN total bigint;
