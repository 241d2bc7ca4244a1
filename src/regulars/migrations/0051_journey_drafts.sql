-- What is being written before it becomes a version, and what a backtest of it said.

CREATE TABLE journey_drafts (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    -- The version that it began with.
    based_on integer NOT NULL,
    -- Counts the changes: whoever changes it says which one they saw.
    revision integer NOT NULL,
    definition json NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    PRIMARY KEY (organization_id, journey_id)
);

CREATE TABLE journey_backtests (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    -- What is played: a version, or the draft at a revision.
    version integer,
    revision integer,
    definition json NOT NULL,
    days integer NOT NULL,
    asked_at timestamptz NOT NULL,
    asked_by text NOT NULL,
    facts bigint NOT NULL DEFAULT 0,
    report json,
    failure text,
    ended_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz,
    PRIMARY KEY (organization_id, journey_id)
);
CREATE INDEX journey_backtests_due ON journey_backtests (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX journey_backtests_to_take ON journey_backtests (organization_id, due_at, journey_id)
    WHERE due_at IS NOT NULL;
