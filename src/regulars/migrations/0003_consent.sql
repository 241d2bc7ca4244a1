-- The head of a number's consent: the subscription as it is shown, and what the next event needs to be decided in
-- constant time (latest opt-in, latest opt-out, last hash). One row per organization and number.
CREATE TABLE subscriptions (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    -- HMAC of the E.164 number under the organization's secret: the key that survives an erasure.
    number_hash bytea NOT NULL,
    -- NULL after an erasure, until the person consents again.
    phone_number text,
    profile_id uuid,
    status text NOT NULL CHECK (status IN ('SUBSCRIBED', 'UNSUBSCRIBED', 'PENDING')),
    consent_source text,
    consented_at timestamptz,
    terms_url text,
    terms_version text,
    source_text text,
    latest_opt_in_at timestamptz,
    latest_opt_out_at timestamptz,
    entry_count bigint NOT NULL,
    last_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, number_hash)
);
CREATE INDEX subscriptions_by_profile ON subscriptions (organization_id, profile_id, id) WHERE profile_id IS NOT NULL;
CREATE INDEX subscriptions_by_status ON subscriptions (organization_id, status, id);

-- Every consent event, in order of arrival. Rows are inserted and never changed or deleted: each carries the hash of
-- the one before, and nothing in them tells who the person is.
CREATE TABLE consent_ledger (
    organization_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    sequence bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('OPT_IN', 'OPT_OUT', 'ERASURE')),
    outcome text NOT NULL,
    -- Where the event stands in the order; the caller's claim is kept beside it.
    effective_at timestamptz NOT NULL,
    claimed_at timestamptz,
    received_at timestamptz NOT NULL,
    -- HMAC of the payload under its salt: proves the payload while it is kept and says nothing once it is erased.
    commitment bytea NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (organization_id, subscription_id, sequence)
);

-- What was said, when, by which key or message, with the request id. Erasure deletes from here.
CREATE TABLE consent_payloads (
    organization_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    sequence bigint NOT NULL,
    -- The profile the payload names, so that its erasure finds payloads of numbers that belong to others by now.
    profile_id uuid,
    salt bytea NOT NULL,
    -- json keeps the text as it was committed to; jsonb would reorder it.
    payload json NOT NULL,
    PRIMARY KEY (organization_id, subscription_id, sequence)
);
CREATE INDEX consent_payloads_by_profile ON consent_payloads (organization_id, profile_id) WHERE profile_id IS NOT NULL;
