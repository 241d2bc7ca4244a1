-- oldest server: 0080
-- oldest worker: 0138
-- Short links in texts, and the clicks on them. A worker of an earlier release takes `{{ link("…") }}` for a field without
-- a value and skips the text, so it may not run on a database whose texts may have links.

-- The first four characters of a short link, which name its organization: a directory table.
CREATE TABLE link_prefixes (
    prefix text PRIMARY KEY,
    organization_id uuid NOT NULL UNIQUE REFERENCES organizations (id)
);

CREATE TABLE links (
    organization_id uuid NOT NULL,
    code text NOT NULL,
    -- `opt-out` is a page of ours.
    url text NOT NULL,
    -- A campaign and its variant, a journey and its step, or another text and its step.
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    created_at timestamptz NOT NULL,
    -- Of a link for one recipient; NULL where all recipients share it. The other two are NULL after an erasure.
    personal_since timestamptz,
    text_id uuid,
    profile_id uuid,
    PRIMARY KEY (organization_id, code)
);
CREATE UNIQUE INDEX links_shared ON links (organization_id, origin_id, step, url, origin_kind)
    WHERE personal_since IS NULL;
CREATE INDEX links_of_text ON links (organization_id, text_id) WHERE text_id IS NOT NULL;
CREATE INDEX links_by_profile ON links (organization_id, profile_id) WHERE profile_id IS NOT NULL;
CREATE INDEX links_kept_since ON links (personal_since, organization_id) WHERE personal_since IS NOT NULL;

CREATE TABLE clicks (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    code text NOT NULL,
    minute timestamptz NOT NULL,
    class text NOT NULL CHECK (class IN ('person', 'machine')),
    -- Deleted after an hour: the moment, and where the click came from.
    traced_at timestamptz,
    address text,
    agent text,
    PRIMARY KEY (organization_id, id)
);
CREATE INDEX clicks_of_link ON clicks (organization_id, code, minute);
CREATE INDEX clicks_by_address ON clicks (organization_id, address, traced_at) WHERE address IS NOT NULL;
CREATE INDEX clicks_traced ON clicks (traced_at, organization_id) WHERE traced_at IS NOT NULL;
CREATE INDEX clicks_kept_since ON clicks (minute, organization_id);

-- Counts of clicks, which stay when the clicks are deleted.
CREATE TABLE click_totals (
    organization_id uuid NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    class text NOT NULL,
    clicks bigint NOT NULL,
    PRIMARY KEY (organization_id, origin_id, step, class, origin_kind)
);
