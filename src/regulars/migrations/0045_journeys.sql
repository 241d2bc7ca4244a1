-- Journeys: versioned definitions, who is in them, and what each run saw and decided.

CREATE TABLE journeys (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    state text NOT NULL CHECK (state IN ('draft', 'live', 'paused', 'archived')),
    -- The latest version, and the one that new facts enter by.
    version integer NOT NULL,
    live_version integer,
    paused_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id)
);

CREATE TABLE journey_versions (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer NOT NULL,
    definition json NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text,
    PRIMARY KEY (organization_id, journey_id, version)
);

-- When which version was live: a fact enters by the one that was live when it was recorded.
CREATE TABLE journey_activations (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer NOT NULL,
    trigger text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz,
    PRIMARY KEY (organization_id, journey_id, since)
);

CREATE INDEX journey_activations_by_trigger ON journey_activations (organization_id, trigger, since);

-- A customer's place in a journey: locked to decide about another entry.
CREATE TABLE journey_customers (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    entered_at timestamptz,
    run_id uuid,
    PRIMARY KEY (organization_id, journey_id, profile_id)
);

CREATE INDEX journey_customers_by_profile ON journey_customers (organization_id, profile_id);

CREATE TABLE journey_runs (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer NOT NULL,
    -- What brought the customer in; a sale or a consent enters a journey once, whichever path or retry brings it.
    fact_kind text NOT NULL CHECK (fact_kind IN ('sale', 'consent')),
    fact_id text NOT NULL,
    profile_id uuid NOT NULL,
    sale_id uuid,
    state text NOT NULL CHECK (state IN ('active', 'parked', 'ended')),
    -- The step to do next; while it waits, the one it waits in.
    step text,
    waits_for text CHECK (waits_for IN ('time', 'purchase', 'text')),
    waiting_since timestamptz,
    due_at timestamptz,
    -- What `due_at` was when the journey was paused.
    held_due_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    outcome text,
    reason text,
    entered_at timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, journey_id, fact_kind, fact_id)
);

CREATE INDEX journey_runs_due ON journey_runs (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX journey_runs_due_here ON journey_runs (organization_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX journey_runs_active ON journey_runs (organization_id, profile_id) WHERE state = 'active';
CREATE INDEX journey_runs_of_journey ON journey_runs (organization_id, journey_id, id);
CREATE INDEX journey_runs_open ON journey_runs (organization_id, journey_id, id) WHERE state <> 'ended';
CREATE INDEX journey_runs_by_profile ON journey_runs (organization_id, profile_id, id);
CREATE INDEX journey_runs_ended ON journey_runs (ended_at, organization_id) WHERE ended_at IS NOT NULL;

CREATE TABLE journey_trace (
    organization_id uuid NOT NULL,
    run_id uuid NOT NULL,
    sequence integer NOT NULL,
    at timestamptz NOT NULL,
    step text,
    event text NOT NULL,
    detail json NOT NULL,
    PRIMARY KEY (organization_id, run_id, sequence)
);

-- How often what happened at which step; this stays when runs are gone.
CREATE TABLE journey_totals (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer NOT NULL,
    step text NOT NULL,
    event text NOT NULL,
    times bigint NOT NULL,
    PRIMARY KEY (organization_id, journey_id, version, step, event)
);
