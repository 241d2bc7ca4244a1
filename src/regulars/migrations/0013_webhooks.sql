-- Webhooks: endpoints, the messages made of events, and their deliveries.

CREATE TABLE webhook_endpoints (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    url text NOT NULL,
    description text NOT NULL,
    -- Names of events, or a family such as `profile.*`.
    event_types text[] NOT NULL,
    -- Sealed with the key outside the database. The one before signs too until its time is over.
    secret bytea NOT NULL,
    old_secret bytea,
    old_secret_until timestamptz,
    -- A deleted one goes with the last of its deliveries.
    state text NOT NULL CHECK (state IN ('enabled', 'disabled', 'deleted')),
    disabled_at timestamptz,
    disabled_by text CHECK (disabled_by IN ('person', 'receiver', 'failures')),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- How its last attempts went: failures since the last success, and since when there were only failures.
    failures integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    last_success_at timestamptz,
    is_slow boolean NOT NULL DEFAULT false,
    -- While it keeps failing only one delivery is tried, at this time.
    probe_at timestamptz,
    PRIMARY KEY (organization_id, id)
);
CREATE INDEX webhook_endpoints_to_probe ON webhook_endpoints (probe_at, organization_id)
    WHERE probe_at IS NOT NULL;

CREATE TABLE webhook_messages (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    -- What is sent, byte for byte; NULL once the person it spoke of was erased.
    body text,
    profile_id uuid,
    subscription_id uuid,
    -- It tells of the erasure itself, so an erasure leaves it alone.
    of_erasure boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id)
);
CREATE INDEX webhook_messages_of_profile ON webhook_messages (organization_id, profile_id)
    WHERE profile_id IS NOT NULL;
CREATE INDEX webhook_messages_of_subscription ON webhook_messages (organization_id, subscription_id)
    WHERE subscription_id IS NOT NULL;
CREATE INDEX webhook_messages_created_at ON webhook_messages USING brin (created_at) WITH (pages_per_range = 32);

CREATE TABLE webhook_deliveries (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    message_id uuid NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'delivered', 'failed', 'cancelled')),
    attempts integer NOT NULL DEFAULT 0,
    -- Claims that lapsed because their worker died: what was sent then, if anything, is sent again.
    lapses integer NOT NULL DEFAULT 0,
    due_at timestamptz,
    owner uuid,
    created_at timestamptz NOT NULL,
    -- When the last attempt ended, how long it took, and what the receiver answered.
    attempted_at timestamptz,
    duration_ms integer,
    answer_status smallint,
    is_replay boolean NOT NULL DEFAULT false,
    PRIMARY KEY (organization_id, id)
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_to_take ON webhook_deliveries (organization_id, endpoint_id, due_at, id)
    WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (organization_id, endpoint_id)
    WHERE owner IS NOT NULL;
CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (organization_id, endpoint_id, id);
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (organization_id, endpoint_id, id)
    WHERE state = 'failed';
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries (organization_id, message_id);
ALTER TABLE webhook_deliveries SET (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 5000
);

-- Attempts that failed; a success is noted on its delivery.
CREATE TABLE webhook_attempts (
    organization_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    number integer NOT NULL,
    attempted_at timestamptz NOT NULL,
    duration_ms integer NOT NULL,
    status smallint,
    -- What went wrong, as a sentence, and the beginning of the receiver's answer.
    error text NOT NULL,
    answer text,
    PRIMARY KEY (organization_id, delivery_id, number)
);
