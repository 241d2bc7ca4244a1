-- oldest server: 0080
-- oldest worker: 0145
-- Sums of months beside those of days, so that a page over a year reads 12 rows instead of 365.

SET LOCAL lock_timeout = '5s';

-- Always true. A worker of an earlier release does not know it, and fails rather than leave the sums of months behind.
ALTER TABLE attribution_totals ADD COLUMN is_in_months boolean NOT NULL DEFAULT true;
ALTER TABLE attribution_totals ALTER COLUMN is_in_months DROP DEFAULT;
ALTER TABLE sent_texts ADD COLUMN is_in_months boolean NOT NULL DEFAULT true;
ALTER TABLE sent_texts ALTER COLUMN is_in_months DROP DEFAULT;

CREATE TABLE attribution_months (
    organization_id uuid NOT NULL,
    -- The first of the month.
    day date NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    currency text NOT NULL,
    tickets bigint NOT NULL,
    gross_cents numeric NOT NULL,
    net_cents numeric NOT NULL,
    unmatched_cents numeric NOT NULL,
    PRIMARY KEY (organization_id, day, origin_kind, origin_id, step, currency)
) WITH (fillfactor = 70);
CREATE INDEX attribution_months_by_origin ON attribution_months (organization_id, origin_id, day);

INSERT INTO attribution_months
SELECT
    organization_id, date_trunc('month', day)::date, origin_kind, origin_id, step, currency, sum(tickets)::bigint,
    sum(gross_cents), sum(net_cents), sum(unmatched_cents)
FROM attribution_totals
GROUP BY 1, 2, 3, 4, 5, 6;

CREATE TABLE sent_text_months (
    organization_id uuid NOT NULL,
    -- The first of the month.
    day date NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    country text NOT NULL,
    texts bigint NOT NULL,
    parts bigint NOT NULL,
    PRIMARY KEY (organization_id, day, origin_kind, origin_id, step, country)
) WITH (fillfactor = 70);
CREATE INDEX sent_text_months_by_origin ON sent_text_months (organization_id, origin_id, day);

INSERT INTO sent_text_months
SELECT
    organization_id, date_trunc('month', day)::date, origin_kind, origin_id, step, country, sum(texts)::bigint,
    sum(parts)::bigint
FROM sent_texts
GROUP BY 1, 2, 3, 4, 5, 6;
