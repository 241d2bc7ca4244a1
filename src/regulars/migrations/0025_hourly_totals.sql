-- What was sold in each hour, per store, currency and type: kept by a listener of new sales, read by every page with
-- figures. An hour is one of UTC; all zones in which our currencies are paid differ from it by whole hours.
CREATE TABLE hourly_totals (
    organization_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    store_id uuid NOT NULL,
    currency text NOT NULL,
    type text NOT NULL,
    tickets bigint NOT NULL,
    -- Tickets that named a customer when they were recorded; an erasure later does not move the figure.
    identified_tickets bigint NOT NULL,
    -- One ticket may hold 2^53 cents, so a thousand of them do not fit a bigint.
    amount_cents numeric NOT NULL,
    discount_cents numeric NOT NULL,
    PRIMARY KEY (organization_id, hour, store_id, currency, type)
) WITH (fillfactor = 70);
CREATE INDEX hourly_totals_by_store ON hourly_totals (organization_id, store_id, hour);

-- How far the sales that were stored before the listener existed have been counted. The id of a sale tells when it was
-- made: those up to the fence are counted by the fill and by nobody else, those after it by the listener. The fence
-- lies ten minutes ahead, when no worker of the release before, which does not know the listener, runs any more.
CREATE TABLE hourly_totals_fills (
    organization_id uuid PRIMARY KEY,
    fence uuid NOT NULL,
    walked_to uuid NOT NULL,
    -- When the fill goes on; NULL once it is done.
    due_at timestamptz
);
CREATE INDEX hourly_totals_fills_due ON hourly_totals_fills (due_at, organization_id) WHERE due_at IS NOT NULL;

INSERT INTO hourly_totals_fills (organization_id, fence, walked_to, due_at)
SELECT
    id,
    (lpad(to_hex((extract(epoch FROM now() + interval '10 minutes') * 1000)::bigint), 12, '0')
        || '7fffbfffffffffffffff')::uuid,
    '00000000-0000-0000-0000-000000000000',
    now()
FROM organizations;
