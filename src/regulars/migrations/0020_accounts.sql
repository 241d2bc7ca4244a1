-- People who sign in. All tables here are directories: they are read before the organization is known.

ALTER TABLE organizations ADD COLUMN time_zone text NOT NULL DEFAULT 'UTC';
-- How numbers, money and dates are written for people of this organization, such as en-GB or fr-CH.
ALTER TABLE organizations ADD COLUMN locale text NOT NULL DEFAULT 'en-GB';

-- The name of an organization in addresses. Old ones stay, so that an address that was once given out leads somewhere.
CREATE TABLE organization_slugs (
    slug text PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organizations (id),
    is_current boolean NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX organization_slugs_current ON organization_slugs (organization_id) WHERE is_current;

-- Organizations of the release before get a slug from the letters of their name that need no table of accents.
INSERT INTO organization_slugs (slug, organization_id, is_current, created_at)
SELECT CASE WHEN place = 1 THEN base ELSE base || '-' || left(replace(id::text, '-', ''), 12) END, id, true, now()
FROM (
    SELECT id, base, row_number() OVER (PARTITION BY base ORDER BY created_at, id) AS place
    FROM (
        SELECT id, created_at,
            coalesce(nullif(trim(BOTH '-' FROM left(regexp_replace(lower(name), '[^a-z0-9]+', '-', 'g'), 40)), ''),
                'organization') AS base
        FROM organizations
    ) AS spelled
) AS numbered;

CREATE TABLE users (
    id uuid PRIMARY KEY,
    -- Lower case; it names the person and is never written to.
    email text NOT NULL UNIQUE,
    name text NOT NULL,
    -- argon2id in the usual notation; NULL until the person has chosen a password.
    password_hash text,
    -- The reader's own way to write numbers and dates; NULL takes the organization's.
    locale text,
    created_at timestamptz NOT NULL,
    disabled_at timestamptz,
    -- Sealed with the key outside the database; NULL while there is no second factor.
    totp_secret bytea,
    totp_enabled_at timestamptz,
    -- The last step of 30 seconds whose code was taken: a code works once.
    totp_step bigint
);

CREATE TABLE memberships (
    organization_id uuid NOT NULL REFERENCES organizations (id),
    user_id uuid NOT NULL REFERENCES users (id),
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'marketer', 'analyst', 'developer')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX memberships_by_user ON memberships (user_id);

CREATE TABLE sessions (
    -- SHA-256 of the cookie's value, which only the browser keeps.
    token_hash bytea PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    user_id uuid NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    -- How long it may rest, and when it ends whatever happens.
    idle_s integer NOT NULL,
    ends_at timestamptz NOT NULL,
    address text,
    agent text
);
CREATE INDEX sessions_by_user ON sessions (user_id);
