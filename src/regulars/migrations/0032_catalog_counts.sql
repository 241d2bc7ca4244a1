-- Values of the catalogs, counted by how their type reads them: a walk over the stored rows, in bites, that goes on
-- where it stopped.

SET LOCAL lock_timeout = '5s';

CREATE TABLE catalog_counts (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    catalog text NOT NULL CHECK (catalog IN ('attributes', 'products')),
    -- Null: every key, each by its declared type. Otherwise one key, by the type that is proposed for it.
    key text,
    type text CHECK (type IN ('text', 'number', 'boolean', 'date', 'currency', 'enum')),
    allowed_values text[] NOT NULL DEFAULT '{}',
    walked_to uuid NOT NULL,
    rows_read bigint NOT NULL DEFAULT 0,
    rows_total bigint,
    created_at timestamptz NOT NULL,
    finished_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    -- When the next bite is due, or for a finished preview its end. Null: finished, or parked after failing.
    due_at timestamptz,
    PRIMARY KEY (organization_id, id)
);

CREATE INDEX catalog_counts_due ON catalog_counts (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX catalog_counts_newest ON catalog_counts (organization_id, catalog, id);

CREATE TABLE catalog_tallies (
    organization_id uuid NOT NULL,
    count_id uuid NOT NULL,
    key text NOT NULL,
    readable bigint NOT NULL,
    unreadable bigint NOT NULL,
    leading_zeros bigint NOT NULL,
    -- Values with how often each stands there: some that cannot be read, and the first ones that can.
    samples jsonb NOT NULL DEFAULT '[]',
    common jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (organization_id, count_id, key)
);
