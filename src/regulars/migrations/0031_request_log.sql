-- What the API answered lately: single answers, lossy by design, and how many there were each hour.

SET LOCAL lock_timeout = '5s';

CREATE TABLE request_log (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    api_key_id uuid NOT NULL,
    answered_at timestamptz NOT NULL,
    method text NOT NULL,
    target text NOT NULL,
    status smallint NOT NULL,
    code text,
    duration_us bigint NOT NULL,
    request_id text NOT NULL,
    -- The profile that the path names, so that an erasure finds the entry.
    profile_id uuid,
    problem json,
    PRIMARY KEY (organization_id, id)
);

CREATE INDEX request_log_of_key ON request_log (organization_id, api_key_id, id);
CREATE INDEX request_log_refused ON request_log (organization_id, id) WHERE status >= 400;
CREATE INDEX request_log_refused_of_key ON request_log (organization_id, api_key_id, id) WHERE status >= 400;

CREATE TABLE request_counts (
    organization_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    api_key_id uuid NOT NULL,
    answers bigint NOT NULL,
    refusals bigint NOT NULL,
    PRIMARY KEY (organization_id, hour, api_key_id)
);

-- Organizations with entries past their time are found by time, across organizations. Entries come in its order, so
-- the smallest of indexes is enough.
CREATE INDEX request_log_answered_at ON request_log USING brin (answered_at) WITH (pages_per_range = 32);
CREATE INDEX request_counts_hour ON request_counts USING brin (hour) WITH (pages_per_range = 32);
