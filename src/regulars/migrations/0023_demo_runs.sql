-- Filling an organization with the demo, asked for on a page and done by the worker.
CREATE TABLE demo_runs (
    organization_id uuid PRIMARY KEY,
    tickets integer NOT NULL,
    -- How many items of each part are in.
    progress json NOT NULL DEFAULT '{}',
    attempts integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    -- When a worker may take it, or take it over from one that died; NULL once it is done or given up.
    due_at timestamptz,
    finished_at timestamptz,
    failed_at timestamptz
);
CREATE INDEX demo_runs_due ON demo_runs (due_at, organization_id) WHERE due_at IS NOT NULL;
