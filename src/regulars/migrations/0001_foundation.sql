-- Every table of an organization starts its keys with organization_id: that is tenant isolation, and it is
-- what lets the same statements run on a cluster distributed by that column.

CREATE TABLE organizations (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    default_country text,
    -- Signs cursors and keys the hashes of erased phone numbers. It never leaves the database and the processes.
    secret bytea NOT NULL,
    created_at timestamptz NOT NULL
);

CREATE TABLE api_keys (
    id uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id),
    name text NOT NULL,
    -- The last four characters, so that a person can tell keys apart; the key itself is never stored.
    hint text NOT NULL,
    key_hash bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at timestamptz
);

CREATE TABLE idempotency_keys (
    organization_id uuid NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    status smallint NOT NULL,
    -- NULL once the person the answer spoke of was erased.
    body bytea,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, key)
);
-- The sweep finds old rows by time; a block range index costs the hot path next to nothing.
CREATE INDEX idempotency_keys_created_at ON idempotency_keys USING brin (created_at) WITH (pages_per_range = 32);

CREATE TABLE outbox (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    topic text NOT NULL,
    payload json NOT NULL,
    created_at timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    not_before timestamptz,
    PRIMARY KEY (organization_id, id)
);

CREATE TABLE stores (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    external_id text NOT NULL,
    name text,
    -- All seven fields of an address in the order of the specification, or NULL.
    address json,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, external_id)
);

CREATE TABLE profiles (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    external_id text NOT NULL,
    -- E.164 where it could be read, otherwise exactly as it was sent; phone_reachable tells which.
    phone_number text,
    phone_reachable boolean NOT NULL DEFAULT false,
    first_name text,
    last_name text,
    attributes jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, external_id)
);
-- Only a beginning is indexed: a number kept as sent may be longer than an index entry can be.
CREATE INDEX profiles_by_phone_number ON profiles (organization_id, left(phone_number, 64))
    WHERE phone_number IS NOT NULL;

CREATE TABLE profile_attributes (
    organization_id uuid NOT NULL,
    key text NOT NULL,
    type text NOT NULL CHECK (type IN ('text', 'number', 'boolean', 'date', 'currency', 'enum')),
    -- The first value looked like a number but has leading zeros: probably a code, better kept as text.
    looks_like_code boolean NOT NULL DEFAULT false,
    -- The closed list of an enum; empty for every other type.
    allowed_values text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, key)
);

CREATE TABLE product_properties (
    organization_id uuid NOT NULL,
    key text NOT NULL,
    type text NOT NULL CHECK (type IN ('text', 'number', 'boolean', 'date', 'currency', 'enum')),
    allowed_values text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, key)
);

-- The hot table: no foreign keys (stores are never deleted, erased profiles are unlinked), and payload columns
-- are json, which keeps them verbatim and costs less than jsonb. Fixed-width columns come first.
CREATE TABLE sales_events (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    store_id uuid NOT NULL,
    profile_id uuid,
    occurred_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    total_amount_cents bigint NOT NULL,
    total_discount_cents bigint NOT NULL,
    total_tax_cents bigint,
    external_id text NOT NULL,
    type text NOT NULL,
    currency text NOT NULL,
    source text,
    payments json,
    loyalty json,
    metadata json,
    line_items json NOT NULL,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, external_id)
);
CREATE INDEX sales_events_by_store ON sales_events (organization_id, store_id, id);
CREATE INDEX sales_events_by_profile ON sales_events (organization_id, profile_id, id) WHERE profile_id IS NOT NULL;
CREATE INDEX sales_events_by_time ON sales_events (organization_id, occurred_at, id);

-- Another ticket under an external_id that is already ingested: the first stays, the attempt is kept to look at.
CREATE TABLE ticket_collisions (
    organization_id uuid NOT NULL,
    sales_event_id uuid NOT NULL,
    content_hash bytea NOT NULL,
    attempt json NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    times_seen bigint NOT NULL,
    PRIMARY KEY (organization_id, sales_event_id, content_hash)
);
CREATE TABLE ticket_collision_totals (
    organization_id uuid NOT NULL,
    sales_event_id uuid NOT NULL,
    times_seen bigint NOT NULL,
    last_seen_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, sales_event_id)
);
