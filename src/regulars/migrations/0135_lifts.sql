-- oldest server: 0080
-- oldest worker: 0135
-- What texts brought beyond what would have been bought anyway, by holdout. A row is computed when its window closes,
-- daily while returns may still change it, and for the last time when it becomes final. Older workers do not record that
-- a campaign ended.

CREATE TABLE lifts (
    organization_id uuid NOT NULL,
    -- A campaign, the split step of a journey in a month, or the global holdout in a quarter.
    kind text NOT NULL CHECK (kind IN ('campaign', 'journey', 'holdout')),
    source_id uuid NOT NULL,
    step text NOT NULL DEFAULT '',
    period text NOT NULL DEFAULT '',
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'provisional', 'final')),
    -- What share of the customers was to be held out.
    held_out_share double precision NOT NULL,
    -- The length of the window after the last text.
    window_days integer NOT NULL,
    -- Both days belong to the window. What customers spent in the year before `frozen_on` is compared. They are unknown
    -- until the worker has read when the texts of a campaign were fed.
    first_day date,
    last_day date,
    frozen_on date,
    as_of timestamptz,
    -- Sums of both groups by currency.
    result json,
    -- Why there is no result yet.
    reason text,
    owner uuid,
    due_at timestamptz,
    PRIMARY KEY (organization_id, kind, source_id, step, period)
);

CREATE INDEX lifts_due ON lifts (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX lifts_due_here ON lifts (organization_id, due_at, kind, source_id, step, period) WHERE due_at IS NOT NULL;

INSERT INTO lifts (organization_id, kind, source_id, held_out_share, window_days, due_at)
SELECT organization_id, 'campaign', id, (definition ->> 'holdout_percent')::integer / 100.0, 7, ended_at
FROM campaigns
WHERE ended_at IS NOT NULL AND frozen_at IS NOT NULL AND (definition ->> 'holdout_percent')::integer > 0;
