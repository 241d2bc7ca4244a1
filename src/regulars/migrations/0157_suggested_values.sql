-- oldest server: 0080
-- oldest worker: 0157
-- The counts of all keys also have the most frequent values, and that of tickets the products, which pages suggest while
-- a user types. They go on by themselves. An older worker would count without values, and would delete a count that is
-- due again.

-- For each value of a product property, the ends of the ids of some customers who bought a product with it.
ALTER TABLE catalog_tallies ADD COLUMN buyers jsonb NOT NULL DEFAULT '[]';

-- The products on the tickets that a count has read.
CREATE TABLE catalog_products (
    organization_id uuid NOT NULL,
    count_id uuid NOT NULL,
    code text NOT NULL,
    name text NOT NULL,
    -- Code and name, without differences of case.
    searched text NOT NULL,
    -- The lowest and the highest price of one unit in cents, by currency.
    prices json NOT NULL,
    -- Units sold on each of the last days, by day, and their sum when the row was written.
    days json NOT NULL,
    sold double precision NOT NULL,
    -- The day of the last ticket with the product.
    last_day date NOT NULL,
    PRIMARY KEY (organization_id, count_id, code)
);
CREATE INDEX catalog_products_recent ON catalog_products (organization_id, count_id, last_day DESC, code);

-- Every organization counts again from the beginning; earlier counts have no values. The ids are in the order of time,
-- as all others.
DELETE FROM catalog_tallies AS tally USING catalog_counts AS earlier
WHERE earlier.organization_id = tally.organization_id AND earlier.id = tally.count_id AND earlier.key IS NULL;
DELETE FROM catalog_counts WHERE key IS NULL;
INSERT INTO catalog_counts (organization_id, id, catalog, walked_to, created_at, due_at)
SELECT o.id,
       (substr(made.hex, 1, 8) || '-' || substr(made.hex, 9, 4) || '-7' || substr(gen_random_uuid()::text, 16))::uuid,
       it.catalog, '00000000-0000-0000-0000-000000000000', made.at, made.at
FROM organizations AS o
CROSS JOIN (VALUES ('attributes'), ('products')) AS it (catalog)
CROSS JOIN (
    SELECT now() AS at, lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') AS hex
) AS made;
