-- oldest server: 0080
-- oldest worker: 0133
-- Which text a purchase is credited to. An older worker would not compute credits of new sales.

-- A row for each credited purchase. It stays when the text is deleted or the person is erased; it then names neither.
CREATE TABLE attributed_sales (
    organization_id uuid NOT NULL,
    sale_id uuid NOT NULL,
    profile_id uuid,
    text_id uuid,
    touch text NOT NULL CHECK (touch IN ('click', 'delivery')),
    touched_at timestamptz NOT NULL,
    -- The window that applied when it was computed.
    window_hours integer NOT NULL,
    -- When the text left, and on which day of the organization's time zone.
    sent_at timestamptz NOT NULL,
    day date NOT NULL,
    -- A campaign, a journey with its step, or a person: then the id is all zeros.
    origin_kind text NOT NULL CHECK (origin_kind IN ('campaign', 'journey', 'person')),
    origin_id uuid NOT NULL,
    step text NOT NULL,
    occurred_at timestamptz NOT NULL,
    currency text NOT NULL,
    gross_cents bigint NOT NULL,
    net_cents bigint NOT NULL,
    -- Returns after the purchase that match no purchase; not subtracted.
    unmatched_cents numeric NOT NULL,
    PRIMARY KEY (organization_id, sale_id)
);
CREATE INDEX attributed_sales_by_profile ON attributed_sales (organization_id, profile_id, sale_id)
    WHERE profile_id IS NOT NULL;
CREATE INDEX attributed_sales_by_text ON attributed_sales (organization_id, text_id, sale_id) WHERE text_id IS NOT NULL;
CREATE INDEX attributed_sales_by_day ON attributed_sales (organization_id, day, sale_id);
CREATE INDEX attributed_sales_by_origin ON attributed_sales (organization_id, origin_id, day, sale_id);

-- Sums of these rows by the day of the text.
CREATE TABLE attribution_totals (
    organization_id uuid NOT NULL,
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
CREATE INDEX attribution_totals_by_origin ON attribution_totals (organization_id, origin_id, day);

-- Customers whose credits are to be computed.
CREATE TABLE attribution_customers (
    organization_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    -- When the first change came that is not computed yet: texts that left 60 days before are frozen.
    since timestamptz NOT NULL,
    -- NULL once all attempts failed.
    due_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, profile_id)
) WITH (fillfactor = 70);
CREATE INDEX attribution_customers_due ON attribution_customers (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX attribution_customers_to_take ON attribution_customers (organization_id, due_at, profile_id)
    WHERE due_at IS NOT NULL;

-- A walk over the texts of an organization that makes their customers due.
CREATE TABLE attribution_recomputes (
    organization_id uuid PRIMARY KEY,
    -- Texts that left 60 days before this moment are frozen.
    since timestamptz NOT NULL,
    -- The ids of texts: how far it is, and where it ends.
    walked_to uuid NOT NULL,
    until uuid NOT NULL,
    texts bigint NOT NULL DEFAULT 0,
    -- NULL once it is done.
    due_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    requested_at timestamptz NOT NULL,
    requested_by text
);
CREATE INDEX attribution_recomputes_due ON attribution_recomputes (due_at, organization_id) WHERE due_at IS NOT NULL;

-- Versions of the windows; an organization without a row has the defaults.
CREATE TABLE attribution_settings (
    organization_id uuid NOT NULL,
    version integer NOT NULL,
    click_days integer NOT NULL,
    delivery_hours integer NOT NULL,
    lift_days integer NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text,
    PRIMARY KEY (organization_id, version)
);

-- The texts that are stored are credited once with all sales, however old they are.
INSERT INTO attribution_recomputes (organization_id, since, walked_to, until, due_at, requested_at)
SELECT
    o.id, o.created_at, '00000000-0000-0000-0000-000000000000',
    (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7fffbfffffffffffffff')::uuid,
    now(), now()
FROM organizations AS o
WHERE EXISTS (SELECT FROM texts AS t WHERE t.organization_id = o.id);
