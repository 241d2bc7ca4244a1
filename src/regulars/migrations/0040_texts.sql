-- Texts out and in: what was asked for, what became of it, what people answered.

CREATE TABLE texts (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    -- Who asked for it: a run of a journey, a campaign, a person, a reply. One text for each step of an origin.
    origin_kind text NOT NULL CHECK (origin_kind IN ('person', 'journey', 'campaign', 'stop', 'help', 'answer')),
    origin_id uuid NOT NULL,
    step text NOT NULL,
    profile_id uuid,
    -- Absent where a text was skipped because its customer has no number that may be texted.
    number_hash bytea,
    phone_number text,
    body text NOT NULL,
    parts smallint NOT NULL,
    state text NOT NULL
        CHECK (state IN ('queued', 'sending', 'sent', 'delivered', 'failed', 'skipped', 'unknown')),
    -- Why it was skipped or failed.
    reason text,
    -- While it is queued: when to look at it. While it is being sent: when its sender must have ended.
    due_at timestamptz,
    -- Nothing is sent after this moment.
    expires_at timestamptz NOT NULL,
    owner uuid,
    attempts integer NOT NULL DEFAULT 0,
    provider text,
    provider_id text,
    created_at timestamptz NOT NULL,
    -- When the gate let it pass: what the frequency cap counts.
    claimed_at timestamptz,
    ended_at timestamptz,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, origin_kind, origin_id, step)
);

CREATE INDEX texts_due ON texts (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX texts_due_here ON texts (organization_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX texts_on_their_way ON texts (organization_id, number_hash) WHERE state = 'sending';
CREATE INDEX texts_by_number ON texts (organization_id, number_hash, created_at);
CREATE INDEX texts_by_profile ON texts (organization_id, profile_id, id) WHERE profile_id IS NOT NULL;
CREATE INDEX texts_by_state ON texts (organization_id, state, id);
CREATE INDEX texts_by_provider_id ON texts (organization_id, provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX texts_kept_since ON texts (created_at, organization_id);

-- What came in. `decided` stays empty while a person has to read it.
CREATE TABLE replies (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    provider text NOT NULL,
    provider_id text NOT NULL,
    number_hash bytea NOT NULL,
    phone_number text NOT NULL,
    profile_id uuid,
    body text NOT NULL,
    meaning text NOT NULL CHECK (meaning IN ('stop', 'start', 'help', 'perhaps_stop', 'other')),
    -- What was done about it: withdrew, revived, answered, not_stop, ignored.
    decided text,
    decided_by text,
    decided_at timestamptz,
    -- When it counts as a withdrawal if nobody has decided.
    due_at timestamptz,
    received_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, provider, provider_id)
);

CREATE INDEX replies_due ON replies (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX replies_undecided ON replies (organization_id, id) WHERE decided IS NULL;
CREATE INDEX replies_by_number ON replies (organization_id, number_hash, received_at);
CREATE INDEX replies_by_profile ON replies (organization_id, profile_id, id) WHERE profile_id IS NOT NULL;
CREATE INDEX replies_kept_since ON replies (received_at, organization_id);

-- Numbers that get nothing until a person has read what they wrote.
CREATE TABLE suppressions (
    organization_id uuid NOT NULL,
    number_hash bytea NOT NULL,
    reply_id uuid NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (organization_id, number_hash)
);

-- How an organization texts. Without a row it has the simulator and the defaults.
CREATE TABLE sms_settings (
    organization_id uuid PRIMARY KEY,
    provider text NOT NULL CHECK (provider IN ('simulator', 'twilio')),
    settings json NOT NULL,
    -- Sealed with the key that is outside the database.
    credentials bytea,
    held_since timestamptz,
    held_reason text,
    -- When the provider is asked next for what came in and did not reach us.
    due_at timestamptz,
    updated_at timestamptz NOT NULL
);

CREATE INDEX sms_settings_due ON sms_settings (due_at, organization_id) WHERE due_at IS NOT NULL;

-- The simulator's phones: what was "sent", by the simulator's own clock.
CREATE TABLE simulated_texts (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    text_id uuid NOT NULL,
    phone_number text NOT NULL,
    body text NOT NULL,
    sent_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id)
);

CREATE INDEX simulated_texts_by_number ON simulated_texts (organization_id, phone_number, id);
CREATE INDEX simulated_texts_of ON simulated_texts (organization_id, text_id);

-- How many texts reached which state on which day; this stays when the texts are gone.
CREATE TABLE text_totals (
    organization_id uuid NOT NULL,
    day date NOT NULL,
    state text NOT NULL,
    texts bigint NOT NULL,
    parts bigint NOT NULL,
    PRIMARY KEY (organization_id, day, state)
);
