-- A sale whose customer was erased says so: it is compared without what was taken from it.
ALTER TABLE sales_events ADD COLUMN anonymised_at timestamptz;

-- The store of the consent on record.
ALTER TABLE subscriptions ADD COLUMN store_id uuid;
