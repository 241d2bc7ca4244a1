-- One-time links: an invitation, a new password, the first owner. Only a hash of the link's secret is kept.
CREATE TABLE sign_in_links (
    token_hash bytea PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    purpose text NOT NULL CHECK (purpose IN ('invitation', 'password', 'first_owner')),
    -- Whom it is for: an address that may not be a user yet, except for the first owner.
    email text,
    organization_id uuid REFERENCES organizations (id),
    role text,
    created_by uuid REFERENCES users (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX sign_in_links_by_organization ON sign_in_links (organization_id, created_at) WHERE used_at IS NULL;

-- Each is a random code that works once in place of the second factor; its hash is kept.
CREATE TABLE recovery_codes (
    user_id uuid NOT NULL REFERENCES users (id),
    code_hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    used_at timestamptz,
    PRIMARY KEY (user_id, code_hash)
);

-- Failed sign-ins of the last minutes, by who was tried, from where, or both.
CREATE TABLE sign_in_failures (
    subject text PRIMARY KEY,
    count integer NOT NULL,
    until timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_by_until ON sign_in_failures (until);

-- From where somebody has signed in before: strangers' failures elsewhere do not keep them out there.
CREATE TABLE sign_in_places (
    user_id uuid NOT NULL REFERENCES users (id),
    address text NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, address)
);

-- Every administrative act; rows are only ever added. Ids and settings, never customers' data.
CREATE TABLE audit_log (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    at timestamptz NOT NULL,
    -- NULL for an act on the command line.
    actor_id uuid,
    actor text NOT NULL,
    address text,
    act text NOT NULL,
    subject text NOT NULL,
    before json,
    after json,
    PRIMARY KEY (organization_id, id)
);
