-- oldest server: 0080
-- oldest worker: 0129
-- What was sold in each hour and on each day of the organization's time zone, per store and currency. It replaces
-- `hourly_totals`, whose hours are those of UTC; older servers read that until they are replaced. An older worker would
-- not count new sales here.

SET LOCAL lock_timeout = '5s';

-- Counted from the lines when a sale is recorded; NULL in sales of older releases, whose lines are read instead.
ALTER TABLE sales_events
    ADD COLUMN unit_millionths bigint,
    ADD COLUMN line_count integer;

CREATE TABLE sales_totals (
    organization_id uuid NOT NULL,
    -- An hour of a day, or the whole day.
    is_hour boolean NOT NULL,
    day date NOT NULL,
    -- On the clock of the time zone; 0 for a whole day.
    hour smallint NOT NULL,
    store_id uuid NOT NULL,
    currency text NOT NULL,
    purchases bigint NOT NULL,
    returns bigint NOT NULL,
    -- Tickets that named a customer when they were recorded; an erasure later does not change the figure.
    identified bigint NOT NULL,
    -- One ticket may have 2^53 cents, so a thousand of them do not fit a bigint.
    gross_cents numeric NOT NULL,
    returned_cents numeric NOT NULL,
    -- Of purchases.
    discount_cents numeric NOT NULL,
    -- Of purchases less that of returns.
    tax_cents numeric NOT NULL,
    -- The quantities of purchases and of returns; a line that is measured (kg, m) counts 1.
    unit_millionths numeric NOT NULL,
    returned_unit_millionths numeric NOT NULL,
    -- Of purchases.
    lines bigint NOT NULL,
    PRIMARY KEY (organization_id, is_hour, day, hour, store_id, currency)
) WITH (fillfactor = 70);
CREATE INDEX sales_totals_by_store ON sales_totals (organization_id, store_id, is_hour, day);

-- The time zone of the totals, and how far the sales that were stored before them have been counted. The id of a sale
-- tells when it was made: those up to the fence are counted by the fill alone, those after it by the listener. Older
-- workers stop within seconds of this migration, so the fence is a minute ahead.
CREATE TABLE sales_totals_fills (
    organization_id uuid PRIMARY KEY,
    fence uuid NOT NULL,
    walked_to uuid NOT NULL,
    -- When the fill continues; NULL once it is done.
    due_at timestamptz,
    -- The organization's, or UTC if the database does not know that one.
    time_zone text NOT NULL
);
CREATE INDEX sales_totals_fills_due ON sales_totals_fills (due_at, organization_id) WHERE due_at IS NOT NULL;

INSERT INTO sales_totals_fills (organization_id, fence, walked_to, due_at, time_zone)
SELECT
    o.id,
    (lpad(to_hex((extract(epoch FROM now() + interval '1 minute') * 1000)::bigint), 12, '0')
        || '7fffbfffffffffffffff')::uuid,
    '00000000-0000-0000-0000-000000000000',
    now(),
    COALESCE((SELECT z.name FROM pg_timezone_names AS z WHERE z.name = o.time_zone), 'UTC')
FROM organizations AS o;
