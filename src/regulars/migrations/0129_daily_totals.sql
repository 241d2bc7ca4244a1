-- oldest server: 0080
-- oldest worker: 0129
-- What was sold on each day, per store and currency. A day is one of the organization's time zone, which need not differ
-- from UTC by whole hours. An older worker would not count new sales here.

SET LOCAL lock_timeout = '5s';

CREATE TABLE daily_totals (
    organization_id uuid NOT NULL,
    day date NOT NULL,
    store_id uuid NOT NULL,
    currency text NOT NULL,
    purchases bigint NOT NULL,
    returns bigint NOT NULL,
    -- Tickets that named a customer when they were recorded; an erasure later does not change the figure.
    identified bigint NOT NULL,
    gross_cents numeric NOT NULL,
    returned_cents numeric NOT NULL,
    -- Of purchases.
    discount_cents numeric NOT NULL,
    -- Of purchases less that of returns.
    tax_cents numeric NOT NULL,
    -- The quantities of purchases and of returns; a line that is measured (kg, m) counts 1.
    units numeric NOT NULL,
    returned_units numeric NOT NULL,
    -- Of purchases.
    lines bigint NOT NULL,
    PRIMARY KEY (organization_id, day, store_id, currency)
) WITH (fillfactor = 70);
CREATE INDEX daily_totals_by_store ON daily_totals (organization_id, store_id, day);

-- The time zone of the days, and how far the sales that were stored before the table have been counted: those up to the
-- fence are counted by the fill and those after it by the listener, as in `hourly_totals_fills`. Older workers stop
-- within seconds of this migration, so the fence is a minute ahead.
CREATE TABLE daily_totals_fills (
    organization_id uuid PRIMARY KEY,
    fence uuid NOT NULL,
    walked_to uuid NOT NULL,
    -- When the fill continues; NULL once it is done.
    due_at timestamptz,
    -- The organization's, or UTC if the database does not know that one.
    time_zone text NOT NULL
);
CREATE INDEX daily_totals_fills_due ON daily_totals_fills (due_at, organization_id) WHERE due_at IS NOT NULL;

INSERT INTO daily_totals_fills (organization_id, fence, walked_to, due_at, time_zone)
SELECT
    o.id,
    (lpad(to_hex((extract(epoch FROM now() + interval '1 minute') * 1000)::bigint), 12, '0')
        || '7fffbfffffffffffffff')::uuid,
    '00000000-0000-0000-0000-000000000000',
    now(),
    COALESCE((SELECT z.name FROM pg_timezone_names AS z WHERE z.name = o.time_zone), 'UTC')
FROM organizations AS o;
