-- Segments: versioned definitions, who uses them, which keys they read, and how large they were on each day.

CREATE TABLE segments (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id)
);

CREATE TABLE segment_versions (
    organization_id uuid NOT NULL,
    segment_id uuid NOT NULL,
    version integer NOT NULL,
    definition json NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text,
    PRIMARY KEY (organization_id, segment_id, version)
);

-- Another segment, a journey or a campaign asks for this segment: it cannot be deleted meanwhile.
CREATE TABLE segment_uses (
    organization_id uuid NOT NULL,
    segment_id uuid NOT NULL,
    user_kind text NOT NULL,
    user_id uuid NOT NULL,
    PRIMARY KEY (organization_id, segment_id, user_kind, user_id)
);

CREATE INDEX segment_uses_by_user ON segment_uses (organization_id, user_kind, user_id);

-- The keys that the current version of a segment reads, for the pages of the two catalogs.
CREATE TABLE segment_keys (
    organization_id uuid NOT NULL,
    catalog text NOT NULL,
    key text NOT NULL,
    segment_id uuid NOT NULL,
    PRIMARY KEY (organization_id, catalog, key, segment_id)
);

CREATE INDEX segment_keys_by_segment ON segment_keys (organization_id, segment_id);

-- The last count of each day, in the organization's zone.
CREATE TABLE segment_sizes (
    organization_id uuid NOT NULL,
    segment_id uuid NOT NULL,
    day date NOT NULL,
    version integer NOT NULL,
    total bigint NOT NULL,
    may_be_texted bigint NOT NULL,
    counted_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, segment_id, day)
);
