-- Columns beside the rows: what segments are counted from. Everything here is derived and can be built again.

SET LOCAL lock_timeout = '5s';

-- One row for an organization that has segments. Whoever writes columns holds it locked.
CREATE TABLE segment_columns (
    organization_id uuid NOT NULL,
    -- A new build begins a new epoch; rows of earlier ones are left over and swept.
    epoch integer NOT NULL,
    state text NOT NULL CHECK (state IN ('building', 'ready', 'ended')),
    phase text NOT NULL CHECK (phase IN ('waiting', 'customers', 'sales', 'done')),
    -- How the blobs are written; columns of another format are built again.
    format integer NOT NULL,
    -- Transactions below this number, or begun before this moment, may not have known that facts are wanted.
    fence bigint,
    fenced_at timestamptz,
    walked_to uuid NOT NULL,
    done bigint NOT NULL DEFAULT 0,
    total bigint NOT NULL DEFAULT 0,
    next_number bigint NOT NULL DEFAULT 0,
    next_run bigint NOT NULL DEFAULT 1,
    version bigint NOT NULL DEFAULT 0,
    -- The last patch of customers that is folded into their blocks, and how often people were taken out of the blobs.
    folded_to bigint NOT NULL DEFAULT 0,
    purges bigint NOT NULL DEFAULT 0,
    -- How often consents changed: also of numbers that belong to nobody.
    consents bigint NOT NULL DEFAULT 0,
    -- When the oldest erasure was heard whose bytes are still here.
    erased_since timestamptz,
    -- The same, of those whose bytes are being taken out.
    purging_since timestamptz,
    is_littered boolean NOT NULL DEFAULT false,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz,
    tidy_at timestamptz,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id)
);

CREATE INDEX segment_columns_due ON segment_columns (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX segment_columns_to_tidy ON segment_columns (tidy_at, organization_id) WHERE tidy_at IS NOT NULL;

-- The dense number of each customer; a number is never given twice.
CREATE TABLE segment_customers (
    organization_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    epoch integer NOT NULL,
    number integer NOT NULL,
    PRIMARY KEY (organization_id, epoch, profile_id)
);

CREATE UNIQUE INDEX segment_customers_by_number ON segment_customers (organization_id, epoch, number);

-- Runs of columns, never changed once they are written: sales in the order they came, patches of customers, and blocks
-- of customers that patches were folded into.
CREATE TABLE segment_runs (
    organization_id uuid NOT NULL,
    id bigint NOT NULL,
    epoch integer NOT NULL,
    level smallint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('sales', 'patch', 'block')),
    is_live boolean NOT NULL,
    -- The last of the runs that it was made of; of a block, its place.
    ordinal bigint NOT NULL,
    rows bigint NOT NULL,
    bytes bigint NOT NULL,
    -- The times of its sales, in seconds.
    first_s bigint,
    last_s bigint,
    PRIMARY KEY (organization_id, epoch, id)
);

CREATE TABLE segment_blobs (
    organization_id uuid NOT NULL,
    run_id bigint NOT NULL,
    epoch integer NOT NULL,
    part text NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (organization_id, epoch, run_id, part)
);

-- They are compressed already.
ALTER TABLE segment_blobs ALTER COLUMN content SET STORAGE EXTERNAL;

-- The sales that were fed while a build goes on, which leaves them out.
CREATE TABLE segment_fed (
    organization_id uuid NOT NULL,
    sale_id uuid NOT NULL,
    epoch integer NOT NULL,
    PRIMARY KEY (organization_id, epoch, sale_id)
);
