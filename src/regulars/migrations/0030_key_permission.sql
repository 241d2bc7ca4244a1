-- What a key may do. The release before this one knows full keys only, and reads every key as one.

SET LOCAL lock_timeout = '5s';

ALTER TABLE api_keys
    ADD COLUMN permission text NOT NULL DEFAULT 'full' CHECK (permission IN ('full', 'ingest'));
