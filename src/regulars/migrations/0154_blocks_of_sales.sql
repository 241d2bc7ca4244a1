-- oldest server: 0080
-- oldest worker: 0154
-- What each 500 sales in the order of their ids contain, so that a list with a filter without an index skips most of them.
-- An older worker would not have blocks built, and would count sales in totals beside a recount without waiting for it.

CREATE TABLE sale_blocks (
    organization_id uuid NOT NULL,
    -- The store whose sales the block has; the nil UUID for the sales of all stores.
    store_id uuid NOT NULL,
    first_id uuid NOT NULL,
    last_id uuid NOT NULL,
    -- Each pair of type and currency that occurs, such as 'RETURN EUR'.
    contents text[] NOT NULL,
    created_from timestamptz NOT NULL,
    created_to timestamptz NOT NULL,
    occurred_from timestamptz NOT NULL,
    occurred_to timestamptz NOT NULL,
    PRIMARY KEY (organization_id, store_id, last_id)
);

-- The stores, and the nil UUID for all of them, whose next blocks are due to be built.
CREATE TABLE sale_block_builds (
    organization_id uuid NOT NULL,
    store_id uuid NOT NULL,
    due_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, store_id)
);
CREATE INDEX sale_block_builds_due ON sale_block_builds (due_at, organization_id);

INSERT INTO sale_block_builds (organization_id, store_id, due_at)
SELECT id, '00000000-0000-0000-0000-000000000000', now() FROM organizations
UNION ALL
SELECT organization_id, id, now() FROM stores;
