-- oldest server: 0080
-- oldest worker: 0125
-- Campaigns: one text to the members of segments. An older worker would not count their texts.

CREATE TABLE campaigns (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    state text NOT NULL
        CHECK (state IN ('draft', 'scheduled', 'preparing', 'sending', 'paused', 'ended', 'cancelled')),
    is_archived boolean NOT NULL DEFAULT false,
    -- Incremented by each change of the definition; an approval is of one revision.
    revision integer NOT NULL,
    definition json NOT NULL,
    -- While it is paused: the state it returns to. Why it is paused or has ended.
    resumes_to text CHECK (resumes_to IN ('scheduled', 'preparing', 'sending')),
    reason text,
    starts_at timestamptz,
    -- Nothing is sent from this moment on.
    not_after timestamptz,
    -- What a person confirmed when they scheduled it; `confirmed_cost` is by currency.
    confirmed_recipients integer,
    confirmed_cost json,
    confirmed_by text,
    approved_revision integer,
    approved_by text,
    -- The moment of the audience, and its size.
    frozen_at timestamptz,
    recipients integer,
    -- How many texts the rate allows at `tokens_at`; they never exceed one minute of the rate.
    tokens double precision NOT NULL DEFAULT 0,
    tokens_at timestamptz,
    -- When the audience is to be frozen, and who does it.
    freeze_at timestamptz,
    owner uuid,
    -- When the next recipients are to be stored or fed.
    due_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    ended_at timestamptz,
    created_at timestamptz NOT NULL,
    created_by text,
    updated_at timestamptz NOT NULL,
    updated_by text,
    PRIMARY KEY (organization_id, id)
);

CREATE INDEX campaigns_to_freeze ON campaigns (freeze_at, organization_id) WHERE freeze_at IS NOT NULL;
CREATE INDEX campaigns_due ON campaigns (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX campaigns_due_here ON campaigns (organization_id, due_at, id) WHERE due_at IS NOT NULL;

-- The frozen audience until its recipients are stored: sixteen bytes for each profile.
CREATE TABLE campaign_audiences (
    organization_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    piece integer NOT NULL,
    profile_ids bytea NOT NULL,
    PRIMARY KEY (organization_id, campaign_id, piece)
);

CREATE TABLE campaign_recipients (
    organization_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    -- When the recipient may be fed, and when they were.
    open_at timestamptz NOT NULL,
    fed_at timestamptz,
    created_at timestamptz NOT NULL,
    -- The place in the random order of feeding.
    position integer NOT NULL,
    -- 0 is held out; variants are counted from 1 on.
    arm smallint NOT NULL,
    parts smallint NOT NULL DEFAULT 0,
    -- What the totals count this recipient as.
    outcome text NOT NULL,
    reason text NOT NULL DEFAULT '',
    country text NOT NULL DEFAULT '',
    PRIMARY KEY (organization_id, profile_id, campaign_id)
);

CREATE INDEX campaign_recipients_to_feed ON campaign_recipients (organization_id, campaign_id, open_at, position)
    WHERE outcome = 'waiting';
CREATE INDEX campaign_recipients_by_outcome
    ON campaign_recipients (organization_id, campaign_id, outcome, profile_id);
CREATE INDEX campaign_recipients_kept_since ON campaign_recipients (created_at, organization_id);

-- How many recipients have which outcome; this stays when recipients are gone.
CREATE TABLE campaign_totals (
    organization_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    -- -1: customers of the segments who are no recipients.
    arm smallint NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    country text NOT NULL,
    recipients bigint NOT NULL,
    parts bigint NOT NULL,
    PRIMARY KEY (organization_id, campaign_id, arm, outcome, reason, country)
);

CREATE TABLE campaign_settings (
    organization_id uuid PRIMARY KEY,
    settings json NOT NULL,
    updated_at timestamptz NOT NULL
);
