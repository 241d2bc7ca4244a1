-- The schema after all migrations, for reading.
-- Written by bin/schema; a test holds it equal to the migrations.

CREATE FUNCTION base32_digit(n integer) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN substr('0123456789abcdefghjkmnpqrstvwxyz'::text, (1 + (n & 31)), 1);

CREATE FUNCTION base32_uuid(b bytea) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (((((((((((((((((((((((((base32_digit((get_byte(b, 0) >> 5)) || base32_digit(get_byte(b, 0))) || base32_digit((get_byte(b, 1) >> 3))) || base32_digit(((get_byte(b, 2) >> 6) | (get_byte(b, 1) << 2)))) || base32_digit((get_byte(b, 2) >> 1))) || base32_digit(((get_byte(b, 3) >> 4) | (get_byte(b, 2) << 4)))) || base32_digit(((get_byte(b, 4) >> 7) | (get_byte(b, 3) << 1)))) || base32_digit((get_byte(b, 4) >> 2))) || base32_digit(((get_byte(b, 5) >> 5) | (get_byte(b, 4) << 3)))) || base32_digit(get_byte(b, 5))) || base32_digit((get_byte(b, 6) >> 3))) || base32_digit(((get_byte(b, 7) >> 6) | (get_byte(b, 6) << 2)))) || base32_digit((get_byte(b, 7) >> 1))) || base32_digit(((get_byte(b, 8) >> 4) | (get_byte(b, 7) << 4)))) || base32_digit(((get_byte(b, 9) >> 7) | (get_byte(b, 8) << 1)))) || base32_digit((get_byte(b, 9) >> 2))) || base32_digit(((get_byte(b, 10) >> 5) | (get_byte(b, 9) << 3)))) || base32_digit(get_byte(b, 10))) || base32_digit((get_byte(b, 11) >> 3))) || base32_digit(((get_byte(b, 12) >> 6) | (get_byte(b, 11) << 2)))) || base32_digit((get_byte(b, 12) >> 1))) || base32_digit(((get_byte(b, 13) >> 4) | (get_byte(b, 12) << 4)))) || base32_digit(((get_byte(b, 14) >> 7) | (get_byte(b, 13) << 1)))) || base32_digit((get_byte(b, 14) >> 2))) || base32_digit(((get_byte(b, 15) >> 5) | (get_byte(b, 14) << 3)))) || base32_digit(get_byte(b, 15)));

CREATE FUNCTION canonical_id(prefix text, id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (prefix || base32_uuid(uuid_send(id)));

CREATE FUNCTION folded_name(one text, other text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN "left"(lower(btrim(regexp_replace(regexp_replace(NORMALIZE("left"((COALESCE((one || ' '::text), ''::text) || COALESCE(other, ''::text)), 64), NFKD), '[\u0300-\u036f]'::text, ''::text, 'g'::text), '[-''’.,[:space:]]+'::text, ' '::text, 'g'::text))), 64);

CREATE TABLE api_keys (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    name text NOT NULL,
    hint text NOT NULL,
    key_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    permission text DEFAULT 'full'::text NOT NULL,
    CONSTRAINT api_keys_permission_check CHECK ((permission = ANY (ARRAY['full'::text, 'ingest'::text])))
);

CREATE TABLE attributed_sales (
    organization_id uuid NOT NULL,
    sale_id uuid NOT NULL,
    profile_id uuid,
    text_id uuid,
    touch text NOT NULL,
    touched_at timestamp with time zone NOT NULL,
    window_hours integer NOT NULL,
    sent_at timestamp with time zone NOT NULL,
    day date NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    occurred_at timestamp with time zone NOT NULL,
    currency text NOT NULL,
    gross_cents bigint NOT NULL,
    net_cents bigint NOT NULL,
    unmatched_cents numeric NOT NULL,
    CONSTRAINT attributed_sales_origin_kind_check CHECK ((origin_kind = ANY (ARRAY['campaign'::text, 'journey'::text, 'person'::text]))),
    CONSTRAINT attributed_sales_touch_check CHECK ((touch = ANY (ARRAY['click'::text, 'delivery'::text])))
);

CREATE TABLE attribution_customers (
    organization_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    since timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE attribution_months (
    organization_id uuid NOT NULL,
    day date NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    currency text NOT NULL,
    tickets bigint NOT NULL,
    gross_cents numeric NOT NULL,
    net_cents numeric NOT NULL,
    unmatched_cents numeric NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE attribution_recomputes (
    organization_id uuid NOT NULL,
    since timestamp with time zone NOT NULL,
    walked_to uuid NOT NULL,
    until uuid NOT NULL,
    texts bigint DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    requested_by text
);

CREATE TABLE attribution_settings (
    organization_id uuid NOT NULL,
    version integer NOT NULL,
    click_days integer NOT NULL,
    delivery_hours integer NOT NULL,
    lift_days integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text
);

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
    is_in_months boolean NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE audit_heads (
    organization_id uuid NOT NULL,
    sequence bigint NOT NULL,
    hash bytea NOT NULL
);

CREATE TABLE audit_log (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    actor_id uuid,
    actor text NOT NULL,
    address text,
    act text NOT NULL,
    subject text NOT NULL,
    before json,
    after json,
    sequence bigint,
    address_salt bytea,
    actor_salt bytea,
    subject_salt bytea,
    commitments bytea,
    hash bytea,
    address_since timestamp with time zone GENERATED ALWAYS AS (
CASE
    WHEN (address IS NOT NULL) THEN at
    ELSE NULL::timestamp with time zone
END) STORED
);

CREATE TABLE campaign_audiences (
    organization_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    piece integer NOT NULL,
    profile_ids bytea NOT NULL
);

CREATE TABLE campaign_costs (
    organization_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    revision integer NOT NULL,
    next_page text,
    customers integer DEFAULT 0 NOT NULL,
    rendered integer DEFAULT 0 NOT NULL,
    counts json,
    reason text,
    requested_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    owner uuid,
    due_at timestamp with time zone
);

CREATE TABLE campaign_recipients (
    organization_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    open_at timestamp with time zone NOT NULL,
    fed_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    "position" integer NOT NULL,
    arm smallint NOT NULL,
    parts smallint DEFAULT 0 NOT NULL,
    outcome text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    country text DEFAULT ''::text NOT NULL,
    block integer DEFAULT 0 NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='2000');

CREATE TABLE campaign_settings (
    organization_id uuid NOT NULL,
    settings json NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE campaign_totals (
    organization_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    arm smallint NOT NULL,
    outcome text NOT NULL,
    reason text NOT NULL,
    country text NOT NULL,
    recipients bigint NOT NULL,
    parts bigint NOT NULL
);

CREATE TABLE campaigns (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    state text NOT NULL,
    is_archived boolean DEFAULT false NOT NULL,
    revision integer NOT NULL,
    definition json NOT NULL,
    resumes_to text,
    reason text,
    starts_at timestamp with time zone,
    not_after timestamp with time zone,
    confirmed_recipients integer,
    confirmed_cost json,
    confirmed_by text,
    approved_revision integer,
    approved_by text,
    frozen_at timestamp with time zone,
    recipients integer,
    tokens double precision DEFAULT 0 NOT NULL,
    tokens_at timestamp with time zone,
    freeze_at timestamp with time zone,
    owner uuid,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    ended_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    updated_at timestamp with time zone NOT NULL,
    updated_by text,
    question json,
    tokens_queued integer DEFAULT 0 NOT NULL,
    changed_by text[] DEFAULT '{}'::text[] NOT NULL,
    approved_at timestamp with time zone,
    approved_recipients integer,
    approved_cost json,
    approved_segments json,
    CONSTRAINT campaigns_resumes_to_check CHECK ((resumes_to = ANY (ARRAY['scheduled'::text, 'preparing'::text, 'sending'::text]))),
    CONSTRAINT campaigns_state_check CHECK ((state = ANY (ARRAY['draft'::text, 'scheduled'::text, 'preparing'::text, 'sending'::text, 'paused'::text, 'ended'::text, 'cancelled'::text])))
);

CREATE TABLE catalog_counts (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    catalog text NOT NULL,
    key text,
    type text,
    allowed_values text[] DEFAULT '{}'::text[] NOT NULL,
    walked_to uuid NOT NULL,
    rows_read bigint DEFAULT 0 NOT NULL,
    rows_total bigint,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    CONSTRAINT catalog_counts_catalog_check CHECK ((catalog = ANY (ARRAY['attributes'::text, 'products'::text]))),
    CONSTRAINT catalog_counts_type_check CHECK ((type = ANY (ARRAY['text'::text, 'number'::text, 'boolean'::text, 'date'::text, 'currency'::text, 'enum'::text])))
);

CREATE TABLE catalog_products (
    organization_id uuid NOT NULL,
    count_id uuid NOT NULL,
    code text NOT NULL,
    name text NOT NULL,
    searched text NOT NULL,
    prices json NOT NULL,
    days json NOT NULL,
    sold double precision NOT NULL,
    last_day date NOT NULL
);

CREATE TABLE catalog_tallies (
    organization_id uuid NOT NULL,
    count_id uuid NOT NULL,
    key text NOT NULL,
    readable bigint NOT NULL,
    unreadable bigint NOT NULL,
    leading_zeros bigint NOT NULL,
    samples jsonb DEFAULT '[]'::jsonb NOT NULL,
    common jsonb DEFAULT '[]'::jsonb NOT NULL,
    buyers jsonb DEFAULT '[]'::jsonb NOT NULL
);

CREATE TABLE click_totals (
    organization_id uuid NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    class text NOT NULL,
    clicks bigint NOT NULL
);

CREATE TABLE clicks (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    code text NOT NULL,
    minute timestamp with time zone NOT NULL,
    class text NOT NULL,
    traced_at timestamp with time zone,
    address text,
    agent text,
    CONSTRAINT clicks_class_check CHECK ((class = ANY (ARRAY['person'::text, 'machine'::text])))
);

CREATE TABLE consent_figures (
    organization_id uuid NOT NULL,
    time_zone text NOT NULL,
    due_at timestamp with time zone,
    counted_at timestamp with time zone,
    took_ms integer,
    figures json
);

CREATE TABLE consent_ledger (
    organization_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    sequence bigint NOT NULL,
    kind text NOT NULL,
    outcome text NOT NULL,
    effective_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    received_at timestamp with time zone NOT NULL,
    commitment bytea NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT consent_ledger_kind_check CHECK ((kind = ANY (ARRAY['OPT_IN'::text, 'OPT_OUT'::text, 'ERASURE'::text])))
);

CREATE TABLE consent_payloads (
    organization_id uuid NOT NULL,
    subscription_id uuid NOT NULL,
    sequence bigint NOT NULL,
    profile_id uuid,
    salt bytea NOT NULL,
    payload json NOT NULL
);

CREATE TABLE demo_runs (
    organization_id uuid NOT NULL,
    tickets integer NOT NULL,
    progress json DEFAULT '{}'::json NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    finished_at timestamp with time zone,
    failed_at timestamp with time zone,
    seed bigint DEFAULT 1 NOT NULL,
    last_day date
);

CREATE TABLE erased_replies (
    organization_id uuid NOT NULL,
    message_hash bytea NOT NULL,
    erased_at timestamp with time zone NOT NULL
);

CREATE TABLE erasures (
    organization_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    number_hashes bytea[] NOT NULL,
    erased_at timestamp with time zone NOT NULL
);

CREATE TABLE erasures_to_replay (
    organization_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    number_hashes bytea[] NOT NULL,
    erased_at timestamp with time zone NOT NULL,
    is_certain boolean NOT NULL
);

CREATE TABLE holdout_customers (
    organization_id uuid NOT NULL,
    quarter date NOT NULL,
    profile_id uuid NOT NULL,
    is_held_out boolean NOT NULL
);

CREATE TABLE holdout_quarters (
    organization_id uuid NOT NULL,
    quarter date NOT NULL,
    percent smallint NOT NULL,
    begins_on date NOT NULL,
    drawn_to uuid,
    drawn_at timestamp with time zone,
    stopped_at timestamp with time zone,
    customers integer DEFAULT 0 NOT NULL,
    held_out integer DEFAULT 0 NOT NULL
);

CREATE TABLE holdouts (
    organization_id uuid NOT NULL,
    percent smallint NOT NULL,
    with_journeys boolean NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    changed_by text,
    due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL
);

CREATE TABLE hourly_totals (
    organization_id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    store_id uuid NOT NULL,
    currency text NOT NULL,
    type text NOT NULL,
    tickets bigint NOT NULL,
    identified_tickets bigint NOT NULL,
    amount_cents numeric NOT NULL,
    discount_cents numeric NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE hourly_totals_fills (
    organization_id uuid NOT NULL,
    fence uuid NOT NULL,
    walked_to uuid NOT NULL,
    due_at timestamp with time zone
);

CREATE TABLE idempotency_keys (
    organization_id uuid NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    status smallint NOT NULL,
    body bytea,
    created_at timestamp with time zone NOT NULL,
    headers text
);

CREATE TABLE interests (
    organization_id uuid NOT NULL,
    topic text NOT NULL,
    needed_by text NOT NULL
);

CREATE TABLE journey_activations (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer NOT NULL,
    trigger text NOT NULL,
    since timestamp with time zone NOT NULL,
    until timestamp with time zone
);

CREATE TABLE journey_backtests (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer,
    revision integer,
    definition json NOT NULL,
    days integer NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    asked_by text NOT NULL,
    facts bigint DEFAULT 0 NOT NULL,
    report json,
    failure text,
    ended_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone
);

CREATE TABLE journey_customers (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    entered_at timestamp with time zone,
    run_id uuid
);

CREATE TABLE journey_drafts (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    based_on integer NOT NULL,
    revision integer NOT NULL,
    definition json NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    changed_by text NOT NULL
);

CREATE TABLE journey_holdouts (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    step text NOT NULL,
    month date NOT NULL,
    profile_id uuid NOT NULL,
    passed_at timestamp with time zone NOT NULL,
    first_day date NOT NULL,
    percent smallint NOT NULL,
    is_held_out boolean NOT NULL
);

CREATE TABLE journey_runs (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer NOT NULL,
    fact_kind text NOT NULL,
    fact_id text NOT NULL,
    profile_id uuid NOT NULL,
    sale_id uuid,
    state text NOT NULL,
    step text,
    waits_for text,
    waiting_since timestamp with time zone,
    due_at timestamp with time zone,
    held_due_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    outcome text,
    reason text,
    entered_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    fact_at timestamp with time zone,
    seen_sales uuid[],
    CONSTRAINT journey_runs_fact_kind_check CHECK ((fact_kind = ANY (ARRAY['sale'::text, 'consent'::text]))),
    CONSTRAINT journey_runs_state_check CHECK ((state = ANY (ARRAY['active'::text, 'parked'::text, 'ended'::text])))
);

CREATE TABLE journey_totals (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer NOT NULL,
    step text NOT NULL,
    event text NOT NULL,
    times bigint NOT NULL
);

CREATE TABLE journey_trace (
    organization_id uuid NOT NULL,
    run_id uuid NOT NULL,
    sequence integer NOT NULL,
    at timestamp with time zone NOT NULL,
    step text,
    event text NOT NULL,
    detail json NOT NULL
);

CREATE TABLE journey_versions (
    organization_id uuid NOT NULL,
    journey_id uuid NOT NULL,
    version integer NOT NULL,
    definition json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    salts_splits boolean DEFAULT false NOT NULL
);

CREATE TABLE journeys (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    state text NOT NULL,
    version integer NOT NULL,
    live_version integer,
    paused_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT journeys_state_check CHECK ((state = ANY (ARRAY['draft'::text, 'live'::text, 'paused'::text, 'archived'::text])))
);

CREATE TABLE lifts (
    organization_id uuid NOT NULL,
    kind text NOT NULL,
    source_id uuid NOT NULL,
    step text DEFAULT ''::text NOT NULL,
    period text DEFAULT ''::text NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    held_out_share double precision NOT NULL,
    window_days integer NOT NULL,
    first_day date,
    last_day date,
    frozen_on date,
    as_of timestamp with time zone,
    result json,
    reason text,
    owner uuid,
    due_at timestamp with time zone,
    CONSTRAINT lifts_kind_check CHECK ((kind = ANY (ARRAY['campaign'::text, 'journey'::text, 'holdout'::text]))),
    CONSTRAINT lifts_state_check CHECK ((state = ANY (ARRAY['open'::text, 'provisional'::text, 'final'::text])))
);

CREATE TABLE link_prefixes (
    prefix text NOT NULL,
    organization_id uuid NOT NULL
);

CREATE TABLE links (
    organization_id uuid NOT NULL,
    code text NOT NULL,
    url text NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    personal_since timestamp with time zone,
    text_id uuid,
    profile_id uuid
);

CREATE TABLE memberships (
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    role text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT memberships_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'marketer'::text, 'analyst'::text, 'developer'::text])))
);

CREATE TABLE migrations (
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    oldest_server integer,
    oldest_worker integer
);

CREATE TABLE organization_slugs (
    slug text NOT NULL,
    organization_id uuid NOT NULL,
    is_current boolean NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE organizations (
    id uuid NOT NULL,
    name text NOT NULL,
    default_country text,
    secret bytea,
    created_at timestamp with time zone NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    locale text DEFAULT 'en-GB'::text NOT NULL,
    is_demo boolean DEFAULT false NOT NULL,
    requires_second_factor boolean DEFAULT false NOT NULL,
    sealed_secret bytea,
    shows_first_steps boolean DEFAULT true NOT NULL
);

CREATE TABLE outbox (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    topic text NOT NULL,
    payload json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    not_before timestamp with time zone,
    due_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='0', autovacuum_vacuum_insert_scale_factor='0', autovacuum_vacuum_insert_threshold='20000', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='2000');

CREATE TABLE outbox_retries (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    listener text NOT NULL,
    topic text NOT NULL,
    payload json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    attempts integer NOT NULL,
    due_at timestamp with time zone
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='2000', autovacuum_vacuum_cost_delay='0');

CREATE TABLE product_properties (
    organization_id uuid NOT NULL,
    key text NOT NULL,
    type text NOT NULL,
    allowed_values text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT product_properties_type_check CHECK ((type = ANY (ARRAY['text'::text, 'number'::text, 'boolean'::text, 'date'::text, 'currency'::text, 'enum'::text])))
);

CREATE TABLE profile_attributes (
    organization_id uuid NOT NULL,
    key text NOT NULL,
    type text NOT NULL,
    looks_like_code boolean DEFAULT false NOT NULL,
    allowed_values text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT profile_attributes_type_check CHECK ((type = ANY (ARRAY['text'::text, 'number'::text, 'boolean'::text, 'date'::text, 'currency'::text, 'enum'::text])))
);

CREATE TABLE profiles (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    external_id text NOT NULL,
    phone_number text,
    phone_reachable boolean DEFAULT false NOT NULL,
    first_name text,
    last_name text,
    attributes jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public_address (
    only_one boolean DEFAULT true NOT NULL,
    url text,
    changed_at timestamp with time zone NOT NULL,
    nonce_hash bytea,
    answer text,
    nonce_expires_at timestamp with time zone,
    CONSTRAINT public_address_only_one_check CHECK (only_one)
);

CREATE TABLE recovery_codes (
    user_id uuid NOT NULL,
    code_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    salt bytea
);

CREATE TABLE replies (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    provider text NOT NULL,
    provider_id text NOT NULL,
    number_hash bytea NOT NULL,
    phone_number text NOT NULL,
    profile_id uuid,
    body text NOT NULL,
    meaning text NOT NULL,
    decided text,
    decided_by text,
    decided_at timestamp with time zone,
    due_at timestamp with time zone,
    received_at timestamp with time zone NOT NULL,
    CONSTRAINT replies_meaning_check CHECK ((meaning = ANY (ARRAY['stop'::text, 'start'::text, 'help'::text, 'perhaps_stop'::text, 'other'::text])))
);

CREATE TABLE request_counts (
    organization_id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    api_key_id uuid NOT NULL,
    answers bigint NOT NULL,
    refusals bigint NOT NULL
);

CREATE TABLE request_log (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    api_key_id uuid NOT NULL,
    answered_at timestamp with time zone NOT NULL,
    method text NOT NULL,
    target text NOT NULL,
    status smallint NOT NULL,
    code text,
    duration_us bigint NOT NULL,
    request_id text NOT NULL,
    profile_id uuid,
    problem json
);

CREATE TABLE restore_marker (
    only_one boolean DEFAULT true NOT NULL,
    restored_at timestamp with time zone NOT NULL,
    revoked_keys uuid[] NOT NULL,
    revokes_all_keys boolean NOT NULL,
    CONSTRAINT restore_marker_only_one_check CHECK (only_one)
);

CREATE TABLE sale_block_builds (
    organization_id uuid NOT NULL,
    store_id uuid NOT NULL,
    due_at timestamp with time zone NOT NULL
);

CREATE TABLE sale_blocks (
    organization_id uuid NOT NULL,
    store_id uuid NOT NULL,
    first_id uuid NOT NULL,
    last_id uuid NOT NULL,
    contents text[] NOT NULL,
    created_from timestamp with time zone NOT NULL,
    created_to timestamp with time zone NOT NULL,
    occurred_from timestamp with time zone NOT NULL,
    occurred_to timestamp with time zone NOT NULL
);

CREATE TABLE sales_events (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    store_id uuid NOT NULL,
    profile_id uuid,
    occurred_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    total_amount_cents bigint NOT NULL,
    total_discount_cents bigint NOT NULL,
    total_tax_cents bigint,
    external_id text NOT NULL,
    type text NOT NULL,
    currency text NOT NULL,
    source text,
    payments json,
    loyalty json,
    metadata json,
    line_items json NOT NULL,
    anonymised_at timestamp with time zone,
    unit_millionths bigint,
    line_count integer
);

CREATE TABLE sales_totals (
    organization_id uuid NOT NULL,
    is_hour boolean NOT NULL,
    day date NOT NULL,
    hour smallint NOT NULL,
    store_id uuid NOT NULL,
    currency text NOT NULL,
    purchases bigint NOT NULL,
    returns bigint NOT NULL,
    identified bigint NOT NULL,
    gross_cents numeric NOT NULL,
    returned_cents numeric NOT NULL,
    discount_cents numeric NOT NULL,
    tax_cents numeric NOT NULL,
    unit_millionths numeric NOT NULL,
    returned_unit_millionths numeric NOT NULL,
    lines bigint NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE sales_totals_fills (
    organization_id uuid NOT NULL,
    fence uuid NOT NULL,
    walked_to uuid NOT NULL,
    due_at timestamp with time zone,
    time_zone text NOT NULL
);

CREATE TABLE saved_views (
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    page text NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    is_shared boolean DEFAULT false NOT NULL
);

CREATE TABLE segment_blobs (
    organization_id uuid NOT NULL,
    run_id bigint NOT NULL,
    epoch integer NOT NULL,
    part text NOT NULL,
    content bytea NOT NULL
);
ALTER TABLE ONLY segment_blobs ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE segment_columns (
    organization_id uuid NOT NULL,
    epoch integer NOT NULL,
    state text NOT NULL,
    phase text NOT NULL,
    format integer NOT NULL,
    fence bigint,
    fenced_at timestamp with time zone,
    walked_to uuid NOT NULL,
    done bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    next_number bigint DEFAULT 0 NOT NULL,
    next_run bigint DEFAULT 1 NOT NULL,
    version bigint DEFAULT 0 NOT NULL,
    folded_to bigint DEFAULT 0 NOT NULL,
    purges bigint DEFAULT 0 NOT NULL,
    consents bigint DEFAULT 0 NOT NULL,
    erased_since timestamp with time zone,
    purging_since timestamp with time zone,
    is_littered boolean DEFAULT false NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    tidy_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL,
    build_at timestamp with time zone DEFAULT now(),
    phase_at timestamp with time zone,
    used_at timestamp with time zone,
    CONSTRAINT segment_columns_phase_check CHECK ((phase = ANY (ARRAY['waiting'::text, 'customers'::text, 'sales'::text, 'done'::text]))),
    CONSTRAINT segment_columns_state_check CHECK ((state = ANY (ARRAY['building'::text, 'ready'::text, 'ended'::text])))
);

CREATE TABLE segment_customers (
    organization_id uuid NOT NULL,
    profile_id uuid NOT NULL,
    epoch integer NOT NULL,
    number integer NOT NULL
);

CREATE TABLE segment_fed (
    organization_id uuid NOT NULL,
    sale_id uuid NOT NULL,
    epoch integer NOT NULL
);

CREATE TABLE segment_keys (
    organization_id uuid NOT NULL,
    catalog text NOT NULL,
    key text NOT NULL,
    segment_id uuid NOT NULL
);

CREATE TABLE segment_runs (
    organization_id uuid NOT NULL,
    id bigint NOT NULL,
    epoch integer NOT NULL,
    level smallint NOT NULL,
    kind text NOT NULL,
    is_live boolean NOT NULL,
    ordinal bigint NOT NULL,
    rows bigint NOT NULL,
    bytes bigint NOT NULL,
    first_s bigint,
    last_s bigint
);

CREATE TABLE segment_sizes (
    organization_id uuid NOT NULL,
    segment_id uuid NOT NULL,
    day date NOT NULL,
    version integer NOT NULL,
    total bigint NOT NULL,
    may_be_texted bigint NOT NULL,
    counted_at timestamp with time zone NOT NULL
);

CREATE TABLE segment_uses (
    organization_id uuid NOT NULL,
    segment_id uuid NOT NULL,
    user_kind text NOT NULL,
    user_id uuid NOT NULL
);

CREATE TABLE segment_versions (
    organization_id uuid NOT NULL,
    segment_id uuid NOT NULL,
    version integer NOT NULL,
    definition json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    total bigint
);

CREATE TABLE segments (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    owner uuid
);

CREATE TABLE sender_rates (
    organization_id uuid NOT NULL,
    sender text NOT NULL,
    tokens double precision NOT NULL,
    refilled_at timestamp with time zone NOT NULL
);

CREATE TABLE sent_text_months (
    organization_id uuid NOT NULL,
    day date NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    country text NOT NULL,
    texts bigint NOT NULL,
    parts bigint NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE sent_texts (
    organization_id uuid NOT NULL,
    day date NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    country text NOT NULL,
    texts bigint NOT NULL,
    parts bigint NOT NULL,
    is_in_months boolean NOT NULL,
    CONSTRAINT sent_texts_origin_kind_check CHECK ((origin_kind = ANY (ARRAY['campaign'::text, 'journey'::text, 'person'::text])))
)
WITH (fillfactor='70');

CREATE TABLE sessions (
    token_hash bytea NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    idle_s integer NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    address text,
    agent text,
    confirmed_at timestamp with time zone
);

CREATE TABLE sign_in_failures (
    subject text NOT NULL,
    count integer NOT NULL,
    until timestamp with time zone NOT NULL
);

CREATE TABLE sign_in_links (
    token_hash bytea NOT NULL,
    id uuid NOT NULL,
    purpose text NOT NULL,
    email text,
    organization_id uuid,
    role text,
    created_by uuid,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT sign_in_links_purpose_check CHECK ((purpose = ANY (ARRAY['invitation'::text, 'password'::text, 'first_owner'::text])))
);

CREATE TABLE sign_in_places (
    user_id uuid NOT NULL,
    address text NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

CREATE TABLE simulated_texts (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    text_id uuid NOT NULL,
    phone_number text NOT NULL,
    body text NOT NULL,
    sent_at timestamp with time zone NOT NULL
);

CREATE TABLE sms_settings (
    organization_id uuid NOT NULL,
    provider text NOT NULL,
    settings json NOT NULL,
    credentials bytea,
    held_since timestamp with time zone,
    held_reason text,
    due_at timestamp with time zone,
    updated_at timestamp with time zone NOT NULL,
    inbound json,
    CONSTRAINT sms_settings_provider_check CHECK ((provider = ANY (ARRAY['simulator'::text, 'twilio'::text])))
);

CREATE TABLE stopped_origins (
    organization_id uuid NOT NULL,
    origin_id uuid NOT NULL,
    reason text,
    stopped_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone
);

CREATE TABLE stores (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    external_id text NOT NULL,
    name text,
    address json,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE subscriptions (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    number_hash bytea NOT NULL,
    phone_number text,
    profile_id uuid,
    status text NOT NULL,
    consent_source text,
    consented_at timestamp with time zone,
    terms_url text,
    terms_version text,
    source_text text,
    latest_opt_in_at timestamp with time zone,
    latest_opt_out_at timestamp with time zone,
    entry_count bigint NOT NULL,
    last_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    store_id uuid,
    CONSTRAINT subscriptions_status_check CHECK ((status = ANY (ARRAY['SUBSCRIBED'::text, 'UNSUBSCRIBED'::text, 'PENDING'::text])))
);

CREATE TABLE suppressions (
    organization_id uuid NOT NULL,
    number_hash bytea NOT NULL,
    reply_id uuid NOT NULL,
    since timestamp with time zone NOT NULL
);

CREATE TABLE test_numbers (
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    phone_number text NOT NULL,
    number_hash bytea NOT NULL,
    provider text NOT NULL,
    code_id uuid NOT NULL,
    code_until timestamp with time zone NOT NULL,
    attempts smallint NOT NULL,
    verified_at timestamp with time zone
);

CREATE TABLE text_totals (
    organization_id uuid NOT NULL,
    day date NOT NULL,
    state text NOT NULL,
    texts bigint NOT NULL,
    parts bigint NOT NULL
);

CREATE TABLE texts (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    origin_kind text NOT NULL,
    origin_id uuid NOT NULL,
    step text NOT NULL,
    profile_id uuid,
    number_hash bytea,
    phone_number text,
    body text NOT NULL,
    parts smallint NOT NULL,
    state text NOT NULL,
    reason text,
    due_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    owner uuid,
    attempts integer DEFAULT 0 NOT NULL,
    provider text,
    provider_id text,
    created_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    ended_at timestamp with time zone,
    is_paused boolean DEFAULT false NOT NULL,
    priority smallint DEFAULT 1 NOT NULL,
    is_outside_cap boolean DEFAULT false NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    author_id uuid,
    document_id uuid,
    held_by uuid,
    CONSTRAINT texts_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'sending'::text, 'sent'::text, 'delivered'::text, 'failed'::text, 'skipped'::text, 'unknown'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='2000');

CREATE TABLE ticket_collision_totals (
    organization_id uuid NOT NULL,
    sales_event_id uuid NOT NULL,
    times_seen bigint NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    reviewed_at timestamp with time zone,
    review text,
    note text,
    reviewed_by text
);

CREATE TABLE ticket_collisions (
    organization_id uuid NOT NULL,
    sales_event_id uuid NOT NULL,
    content_hash bytea NOT NULL,
    attempt json NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    times_seen bigint NOT NULL
);

CREATE TABLE users (
    id uuid NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    password_hash text,
    locale text,
    created_at timestamp with time zone NOT NULL,
    disabled_at timestamp with time zone,
    totp_secret bytea,
    totp_enabled_at timestamp with time zone,
    totp_step bigint
);

CREATE TABLE vault_key (
    only_one boolean DEFAULT true NOT NULL,
    fingerprint text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    sealed_at timestamp with time zone,
    CONSTRAINT vault_key_only_one_check CHECK (only_one)
);

CREATE TABLE webhook_attempts (
    organization_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    number integer NOT NULL,
    attempted_at timestamp with time zone NOT NULL,
    duration_ms integer NOT NULL,
    status smallint,
    error text NOT NULL,
    answer text
);

CREATE TABLE webhook_deliveries (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    message_id uuid NOT NULL,
    state text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    lapses integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    owner uuid,
    created_at timestamp with time zone NOT NULL,
    attempted_at timestamp with time zone,
    duration_ms integer,
    answer_status smallint,
    is_replay boolean DEFAULT false NOT NULL,
    CONSTRAINT webhook_deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'cancelled'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='5000');

CREATE TABLE webhook_endpoints (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    url text NOT NULL,
    description text NOT NULL,
    event_types text[] NOT NULL,
    secret bytea NOT NULL,
    old_secret bytea,
    old_secret_until timestamp with time zone,
    state text NOT NULL,
    disabled_at timestamp with time zone,
    disabled_by text,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    last_success_at timestamp with time zone,
    is_slow boolean DEFAULT false NOT NULL,
    probe_at timestamp with time zone,
    CONSTRAINT webhook_endpoints_disabled_by_check CHECK ((disabled_by = ANY (ARRAY['person'::text, 'receiver'::text, 'failures'::text]))),
    CONSTRAINT webhook_endpoints_state_check CHECK ((state = ANY (ARRAY['enabled'::text, 'disabled'::text, 'deleted'::text])))
);

CREATE TABLE webhook_messages (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    body text,
    profile_id uuid,
    subscription_id uuid,
    of_erasure boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash);

ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY attributed_sales
    ADD CONSTRAINT attributed_sales_pkey PRIMARY KEY (organization_id, sale_id);

ALTER TABLE ONLY attribution_customers
    ADD CONSTRAINT attribution_customers_pkey PRIMARY KEY (organization_id, profile_id);

ALTER TABLE ONLY attribution_months
    ADD CONSTRAINT attribution_months_pkey PRIMARY KEY (organization_id, day, origin_kind, origin_id, step, currency);

ALTER TABLE ONLY attribution_recomputes
    ADD CONSTRAINT attribution_recomputes_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY attribution_settings
    ADD CONSTRAINT attribution_settings_pkey PRIMARY KEY (organization_id, version);

ALTER TABLE ONLY attribution_totals
    ADD CONSTRAINT attribution_totals_pkey PRIMARY KEY (organization_id, day, origin_kind, origin_id, step, currency);

ALTER TABLE ONLY audit_heads
    ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY campaign_audiences
    ADD CONSTRAINT campaign_audiences_pkey PRIMARY KEY (organization_id, campaign_id, piece);

ALTER TABLE ONLY campaign_costs
    ADD CONSTRAINT campaign_costs_pkey PRIMARY KEY (organization_id, campaign_id);

ALTER TABLE ONLY campaign_recipients
    ADD CONSTRAINT campaign_recipients_pkey PRIMARY KEY (organization_id, campaign_id, profile_id);

ALTER TABLE ONLY campaign_settings
    ADD CONSTRAINT campaign_settings_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY campaign_totals
    ADD CONSTRAINT campaign_totals_pkey PRIMARY KEY (organization_id, campaign_id, arm, outcome, reason, country);

ALTER TABLE ONLY campaigns
    ADD CONSTRAINT campaigns_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY catalog_counts
    ADD CONSTRAINT catalog_counts_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY catalog_products
    ADD CONSTRAINT catalog_products_pkey PRIMARY KEY (organization_id, count_id, code);

ALTER TABLE ONLY catalog_tallies
    ADD CONSTRAINT catalog_tallies_pkey PRIMARY KEY (organization_id, count_id, key);

ALTER TABLE ONLY click_totals
    ADD CONSTRAINT click_totals_pkey PRIMARY KEY (organization_id, origin_id, step, class, origin_kind);

ALTER TABLE ONLY clicks
    ADD CONSTRAINT clicks_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY consent_figures
    ADD CONSTRAINT consent_figures_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY consent_ledger
    ADD CONSTRAINT consent_ledger_pkey PRIMARY KEY (organization_id, subscription_id, sequence);

ALTER TABLE ONLY consent_payloads
    ADD CONSTRAINT consent_payloads_pkey PRIMARY KEY (organization_id, subscription_id, sequence);

ALTER TABLE ONLY demo_runs
    ADD CONSTRAINT demo_runs_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY erased_replies
    ADD CONSTRAINT erased_replies_pkey PRIMARY KEY (organization_id, message_hash);

ALTER TABLE ONLY erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (organization_id, profile_id);

ALTER TABLE ONLY erasures_to_replay
    ADD CONSTRAINT erasures_to_replay_pkey PRIMARY KEY (organization_id, profile_id);

ALTER TABLE ONLY holdout_customers
    ADD CONSTRAINT holdout_customers_pkey PRIMARY KEY (organization_id, quarter, profile_id);

ALTER TABLE ONLY holdout_quarters
    ADD CONSTRAINT holdout_quarters_pkey PRIMARY KEY (organization_id, quarter);

ALTER TABLE ONLY holdouts
    ADD CONSTRAINT holdouts_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY hourly_totals_fills
    ADD CONSTRAINT hourly_totals_fills_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY hourly_totals
    ADD CONSTRAINT hourly_totals_pkey PRIMARY KEY (organization_id, hour, store_id, currency, type);

ALTER TABLE ONLY idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (organization_id, key);

ALTER TABLE ONLY interests
    ADD CONSTRAINT interests_pkey PRIMARY KEY (organization_id, topic, needed_by);

ALTER TABLE ONLY journey_activations
    ADD CONSTRAINT journey_activations_pkey PRIMARY KEY (organization_id, journey_id, since);

ALTER TABLE ONLY journey_backtests
    ADD CONSTRAINT journey_backtests_pkey PRIMARY KEY (organization_id, journey_id);

ALTER TABLE ONLY journey_customers
    ADD CONSTRAINT journey_customers_pkey PRIMARY KEY (organization_id, journey_id, profile_id);

ALTER TABLE ONLY journey_drafts
    ADD CONSTRAINT journey_drafts_pkey PRIMARY KEY (organization_id, journey_id);

ALTER TABLE ONLY journey_holdouts
    ADD CONSTRAINT journey_holdouts_pkey PRIMARY KEY (organization_id, journey_id, step, month, profile_id);

ALTER TABLE ONLY journey_runs
    ADD CONSTRAINT journey_runs_organization_id_journey_id_fact_kind_fact_id_key UNIQUE (organization_id, journey_id, fact_kind, fact_id);

ALTER TABLE ONLY journey_runs
    ADD CONSTRAINT journey_runs_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE journey_runs
    ADD CONSTRAINT journey_runs_waits_for_check CHECK ((waits_for = ANY (ARRAY['time'::text, 'purchase'::text, 'text'::text, 'fault'::text]))) NOT VALID;

ALTER TABLE ONLY journey_totals
    ADD CONSTRAINT journey_totals_pkey PRIMARY KEY (organization_id, journey_id, version, step, event);

ALTER TABLE ONLY journey_trace
    ADD CONSTRAINT journey_trace_pkey PRIMARY KEY (organization_id, run_id, sequence);

ALTER TABLE ONLY journey_versions
    ADD CONSTRAINT journey_versions_pkey PRIMARY KEY (organization_id, journey_id, version);

ALTER TABLE ONLY journeys
    ADD CONSTRAINT journeys_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY lifts
    ADD CONSTRAINT lifts_pkey PRIMARY KEY (organization_id, kind, source_id, step, period);

ALTER TABLE ONLY link_prefixes
    ADD CONSTRAINT link_prefixes_organization_id_key UNIQUE (organization_id);

ALTER TABLE ONLY link_prefixes
    ADD CONSTRAINT link_prefixes_pkey PRIMARY KEY (prefix);

ALTER TABLE ONLY links
    ADD CONSTRAINT links_pkey PRIMARY KEY (organization_id, code);

ALTER TABLE ONLY memberships
    ADD CONSTRAINT memberships_pkey PRIMARY KEY (organization_id, user_id);

ALTER TABLE ONLY migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY organization_slugs
    ADD CONSTRAINT organization_slugs_pkey PRIMARY KEY (slug);

ALTER TABLE ONLY organizations
    ADD CONSTRAINT organizations_name_key UNIQUE (name);

ALTER TABLE ONLY organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY outbox_retries
    ADD CONSTRAINT outbox_retries_pkey PRIMARY KEY (organization_id, id, listener);

ALTER TABLE ONLY product_properties
    ADD CONSTRAINT product_properties_pkey PRIMARY KEY (organization_id, key);

ALTER TABLE ONLY profile_attributes
    ADD CONSTRAINT profile_attributes_pkey PRIMARY KEY (organization_id, key);

ALTER TABLE ONLY profiles
    ADD CONSTRAINT profiles_organization_id_external_id_key UNIQUE (organization_id, external_id);

ALTER TABLE ONLY profiles
    ADD CONSTRAINT profiles_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY public_address
    ADD CONSTRAINT public_address_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY recovery_codes
    ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, code_hash);

ALTER TABLE ONLY replies
    ADD CONSTRAINT replies_organization_id_provider_provider_id_key UNIQUE (organization_id, provider, provider_id);

ALTER TABLE ONLY replies
    ADD CONSTRAINT replies_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY request_counts
    ADD CONSTRAINT request_counts_pkey PRIMARY KEY (organization_id, hour, api_key_id);

ALTER TABLE ONLY request_log
    ADD CONSTRAINT request_log_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY restore_marker
    ADD CONSTRAINT restore_marker_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY sale_block_builds
    ADD CONSTRAINT sale_block_builds_pkey PRIMARY KEY (organization_id, store_id);

ALTER TABLE ONLY sale_blocks
    ADD CONSTRAINT sale_blocks_pkey PRIMARY KEY (organization_id, store_id, last_id);

ALTER TABLE ONLY sales_events
    ADD CONSTRAINT sales_events_organization_id_external_id_key UNIQUE (organization_id, external_id);

ALTER TABLE ONLY sales_events
    ADD CONSTRAINT sales_events_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY sales_totals_fills
    ADD CONSTRAINT sales_totals_fills_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY sales_totals
    ADD CONSTRAINT sales_totals_pkey PRIMARY KEY (organization_id, is_hour, day, hour, store_id, currency);

ALTER TABLE ONLY saved_views
    ADD CONSTRAINT saved_views_pkey PRIMARY KEY (organization_id, user_id, page, name);

ALTER TABLE ONLY segment_blobs
    ADD CONSTRAINT segment_blobs_pkey PRIMARY KEY (organization_id, epoch, run_id, part);

ALTER TABLE ONLY segment_columns
    ADD CONSTRAINT segment_columns_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY segment_customers
    ADD CONSTRAINT segment_customers_pkey PRIMARY KEY (organization_id, epoch, profile_id);

ALTER TABLE ONLY segment_fed
    ADD CONSTRAINT segment_fed_pkey PRIMARY KEY (organization_id, epoch, sale_id);

ALTER TABLE ONLY segment_keys
    ADD CONSTRAINT segment_keys_pkey PRIMARY KEY (organization_id, catalog, key, segment_id);

ALTER TABLE segment_runs
    ADD CONSTRAINT segment_runs_kind_check CHECK ((kind = ANY (ARRAY['sales'::text, 'anonymous'::text, 'patch'::text, 'block'::text]))) NOT VALID;

ALTER TABLE ONLY segment_runs
    ADD CONSTRAINT segment_runs_pkey PRIMARY KEY (organization_id, epoch, id);

ALTER TABLE ONLY segment_sizes
    ADD CONSTRAINT segment_sizes_pkey PRIMARY KEY (organization_id, segment_id, day);

ALTER TABLE ONLY segment_uses
    ADD CONSTRAINT segment_uses_pkey PRIMARY KEY (organization_id, segment_id, user_kind, user_id);

ALTER TABLE ONLY segment_versions
    ADD CONSTRAINT segment_versions_pkey PRIMARY KEY (organization_id, segment_id, version);

ALTER TABLE ONLY segments
    ADD CONSTRAINT segments_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY sender_rates
    ADD CONSTRAINT sender_rates_pkey PRIMARY KEY (organization_id, sender);

ALTER TABLE ONLY sent_text_months
    ADD CONSTRAINT sent_text_months_pkey PRIMARY KEY (organization_id, day, origin_kind, origin_id, step, country);

ALTER TABLE ONLY sent_texts
    ADD CONSTRAINT sent_texts_pkey PRIMARY KEY (organization_id, day, origin_kind, origin_id, step, country);

ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_id_key UNIQUE (id);

ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY sign_in_failures
    ADD CONSTRAINT sign_in_failures_pkey PRIMARY KEY (subject);

ALTER TABLE ONLY sign_in_links
    ADD CONSTRAINT sign_in_links_id_key UNIQUE (id);

ALTER TABLE ONLY sign_in_links
    ADD CONSTRAINT sign_in_links_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY sign_in_places
    ADD CONSTRAINT sign_in_places_pkey PRIMARY KEY (user_id, address);

ALTER TABLE ONLY simulated_texts
    ADD CONSTRAINT simulated_texts_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY sms_settings
    ADD CONSTRAINT sms_settings_pkey PRIMARY KEY (organization_id);

ALTER TABLE ONLY stopped_origins
    ADD CONSTRAINT stopped_origins_pkey PRIMARY KEY (organization_id, origin_id);

ALTER TABLE ONLY stores
    ADD CONSTRAINT stores_organization_id_external_id_key UNIQUE (organization_id, external_id);

ALTER TABLE ONLY stores
    ADD CONSTRAINT stores_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY subscriptions
    ADD CONSTRAINT subscriptions_organization_id_number_hash_key UNIQUE (organization_id, number_hash);

ALTER TABLE ONLY subscriptions
    ADD CONSTRAINT subscriptions_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY suppressions
    ADD CONSTRAINT suppressions_pkey PRIMARY KEY (organization_id, number_hash);

ALTER TABLE ONLY test_numbers
    ADD CONSTRAINT test_numbers_pkey PRIMARY KEY (organization_id, user_id);

ALTER TABLE ONLY text_totals
    ADD CONSTRAINT text_totals_pkey PRIMARY KEY (organization_id, day, state);

ALTER TABLE ONLY texts
    ADD CONSTRAINT texts_organization_id_origin_kind_origin_id_step_key UNIQUE (organization_id, origin_kind, origin_id, step);

ALTER TABLE texts
    ADD CONSTRAINT texts_origin_kind_check CHECK ((origin_kind = ANY (ARRAY['person'::text, 'journey'::text, 'campaign'::text, 'stop'::text, 'help'::text, 'answer'::text, 'test'::text]))) NOT VALID;

ALTER TABLE ONLY texts
    ADD CONSTRAINT texts_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY ticket_collision_totals
    ADD CONSTRAINT ticket_collision_totals_pkey PRIMARY KEY (organization_id, sales_event_id);

ALTER TABLE ONLY ticket_collisions
    ADD CONSTRAINT ticket_collisions_pkey PRIMARY KEY (organization_id, sales_event_id, content_hash);

ALTER TABLE ONLY users
    ADD CONSTRAINT users_email_key UNIQUE (email);

ALTER TABLE ONLY users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY vault_key
    ADD CONSTRAINT vault_key_pkey PRIMARY KEY (only_one);

ALTER TABLE ONLY webhook_attempts
    ADD CONSTRAINT webhook_attempts_pkey PRIMARY KEY (organization_id, delivery_id, number);

ALTER TABLE ONLY webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY webhook_endpoints
    ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (organization_id, id);

ALTER TABLE ONLY webhook_messages
    ADD CONSTRAINT webhook_messages_pkey PRIMARY KEY (organization_id, id);

CREATE INDEX attributed_sales_by_day ON attributed_sales USING btree (organization_id, day, sale_id);

CREATE INDEX attributed_sales_by_origin ON attributed_sales USING btree (organization_id, origin_id, day, sale_id);

CREATE INDEX attributed_sales_by_profile ON attributed_sales USING btree (organization_id, profile_id, sale_id) WHERE (profile_id IS NOT NULL);

CREATE INDEX attributed_sales_by_text ON attributed_sales USING btree (organization_id, text_id, sale_id) WHERE (text_id IS NOT NULL);

CREATE INDEX attribution_customers_due ON attribution_customers USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX attribution_customers_to_take ON attribution_customers USING btree (organization_id, due_at, profile_id) WHERE (due_at IS NOT NULL);

CREATE INDEX attribution_months_by_origin ON attribution_months USING btree (organization_id, origin_id, day);

CREATE INDEX attribution_recomputes_due ON attribution_recomputes USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX attribution_totals_by_origin ON attribution_totals USING btree (organization_id, origin_id, day);

CREATE INDEX audit_log_addresses ON audit_log USING btree (address_since, organization_id) WHERE (address_since IS NOT NULL);

CREATE UNIQUE INDEX audit_log_chain ON audit_log USING btree (organization_id, sequence);

CREATE INDEX campaign_costs_due ON campaign_costs USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX campaign_costs_due_here ON campaign_costs USING btree (organization_id, due_at, campaign_id) WHERE (due_at IS NOT NULL);

CREATE INDEX campaign_recipients_in_blocks ON campaign_recipients USING btree (organization_id, campaign_id, outcome, block);

CREATE INDEX campaign_recipients_kept_since ON campaign_recipients USING btree (created_at, organization_id);

CREATE INDEX campaign_recipients_to_feed ON campaign_recipients USING btree (organization_id, campaign_id, open_at, "position") WHERE (outcome = 'waiting'::text);

CREATE INDEX campaigns_due ON campaigns USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX campaigns_due_here ON campaigns USING btree (organization_id, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX campaigns_stoppable ON campaigns USING btree (organization_id, id) WHERE (state = ANY (ARRAY['scheduled'::text, 'preparing'::text, 'sending'::text, 'paused'::text]));

CREATE INDEX campaigns_to_freeze ON campaigns USING btree (freeze_at, organization_id) WHERE (freeze_at IS NOT NULL);

CREATE INDEX catalog_counts_due ON catalog_counts USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX catalog_counts_newest ON catalog_counts USING btree (organization_id, catalog, id);

CREATE INDEX catalog_products_recent ON catalog_products USING btree (organization_id, count_id, last_day DESC, code);

CREATE INDEX clicks_by_address ON clicks USING btree (organization_id, address, traced_at) WHERE (address IS NOT NULL);

CREATE INDEX clicks_kept_since ON clicks USING btree (minute, organization_id);

CREATE INDEX clicks_of_link ON clicks USING btree (organization_id, code, minute);

CREATE INDEX clicks_traced ON clicks USING btree (traced_at, organization_id) WHERE (traced_at IS NOT NULL);

CREATE INDEX consent_figures_due ON consent_figures USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX consent_payloads_by_profile ON consent_payloads USING btree (organization_id, profile_id) WHERE (profile_id IS NOT NULL);

CREATE INDEX demo_runs_due ON demo_runs USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX erased_replies_kept_since ON erased_replies USING btree (erased_at, organization_id);

CREATE INDEX holdouts_due ON holdouts USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX hourly_totals_by_store ON hourly_totals USING btree (organization_id, store_id, hour);

CREATE INDEX hourly_totals_fills_due ON hourly_totals_fills USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX idempotency_keys_created_at ON idempotency_keys USING brin (created_at) WITH (pages_per_range='32');

CREATE INDEX journey_activations_by_trigger ON journey_activations USING btree (organization_id, trigger, since);

CREATE INDEX journey_backtests_due ON journey_backtests USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX journey_backtests_to_take ON journey_backtests USING btree (organization_id, due_at, journey_id) WHERE (due_at IS NOT NULL);

CREATE INDEX journey_customers_by_profile ON journey_customers USING btree (organization_id, profile_id);

CREATE INDEX journey_holdouts_by_profile ON journey_holdouts USING btree (organization_id, profile_id);

CREATE INDEX journey_holdouts_kept_since ON journey_holdouts USING btree (passed_at, organization_id);

CREATE INDEX journey_runs_active ON journey_runs USING btree (organization_id, profile_id) WHERE (state = 'active'::text);

CREATE INDEX journey_runs_at_fault ON journey_runs USING btree (organization_id, journey_id) WHERE (waits_for = 'fault'::text);

CREATE INDEX journey_runs_at_step ON journey_runs USING btree (organization_id, journey_id, step, id) WHERE (state <> 'ended'::text);

CREATE INDEX journey_runs_by_profile ON journey_runs USING btree (organization_id, profile_id, id);

CREATE INDEX journey_runs_by_state ON journey_runs USING btree (organization_id, journey_id, state, id);

CREATE INDEX journey_runs_due ON journey_runs USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX journey_runs_due_here ON journey_runs USING btree (organization_id, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX journey_runs_due_soon ON journey_runs USING btree (due_at, organization_id) WHERE ((due_at IS NOT NULL) AND ((waits_for IS NULL) OR (waits_for = 'fault'::text) OR (attempts > 0)));

CREATE INDEX journey_runs_ended ON journey_runs USING btree (ended_at, organization_id) WHERE (ended_at IS NOT NULL);

CREATE INDEX journey_runs_of_journey ON journey_runs USING btree (organization_id, journey_id, id);

CREATE INDEX journey_runs_open ON journey_runs USING btree (organization_id, journey_id, id) WHERE (state <> 'ended'::text);

CREATE INDEX journey_runs_parked ON journey_runs USING btree (organization_id, journey_id, id) WHERE (state = 'parked'::text);

CREATE INDEX journey_runs_set_aside ON journey_runs USING btree (organization_id, journey_id, id) WHERE (held_due_at IS NOT NULL);

CREATE INDEX lifts_due ON lifts USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX lifts_due_here ON lifts USING btree (organization_id, due_at, kind, source_id, step, period) WHERE (due_at IS NOT NULL);

CREATE INDEX links_by_profile ON links USING btree (organization_id, profile_id) WHERE (profile_id IS NOT NULL);

CREATE INDEX links_kept_since ON links USING btree (personal_since, organization_id) WHERE (personal_since IS NOT NULL);

CREATE INDEX links_of_text ON links USING btree (organization_id, text_id) WHERE (text_id IS NOT NULL);

CREATE UNIQUE INDEX links_shared ON links USING btree (organization_id, origin_id, step, url, origin_kind) WHERE (personal_since IS NULL);

CREATE INDEX memberships_by_user ON memberships USING btree (user_id);

CREATE UNIQUE INDEX organization_slugs_current ON organization_slugs USING btree (organization_id) WHERE is_current;

CREATE INDEX outbox_due ON outbox USING btree (due_at, organization_id);

CREATE INDEX outbox_retries_due ON outbox_retries USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX outbox_retries_to_take ON outbox_retries USING btree (organization_id, listener, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX profiles_by_change ON profiles USING btree (organization_id, updated_at, id);

CREATE INDEX profiles_by_first_name ON profiles USING btree (organization_id, folded_name(first_name, last_name) COLLATE "C", id) WHERE ((first_name IS NOT NULL) OR (last_name IS NOT NULL));

CREATE INDEX profiles_by_last_name ON profiles USING btree (organization_id, folded_name(last_name, first_name) COLLATE "C", id) WHERE ((first_name IS NOT NULL) AND (last_name IS NOT NULL));

CREATE INDEX profiles_by_phone_number ON profiles USING btree (organization_id, "left"(phone_number, 64)) WHERE (phone_number IS NOT NULL);

CREATE INDEX replies_by_number ON replies USING btree (organization_id, number_hash, received_at);

CREATE INDEX replies_by_profile ON replies USING btree (organization_id, profile_id, id) WHERE (profile_id IS NOT NULL);

CREATE INDEX replies_due ON replies USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX replies_kept_since ON replies USING btree (received_at, organization_id);

CREATE INDEX replies_undecided ON replies USING btree (organization_id, id) WHERE (decided IS NULL);

CREATE INDEX request_counts_hour ON request_counts USING brin (hour) WITH (pages_per_range='32');

CREATE INDEX request_log_answered_at ON request_log USING brin (answered_at) WITH (pages_per_range='32');

CREATE INDEX request_log_of_key ON request_log USING btree (organization_id, api_key_id, id);

CREATE INDEX request_log_refused ON request_log USING btree (organization_id, id) WHERE (status >= 400);

CREATE INDEX request_log_refused_of_key ON request_log USING btree (organization_id, api_key_id, id) WHERE (status >= 400);

CREATE INDEX sale_block_builds_due ON sale_block_builds USING btree (due_at, organization_id);

CREATE INDEX sales_events_by_profile ON sales_events USING btree (organization_id, profile_id, id) WHERE (profile_id IS NOT NULL);

CREATE INDEX sales_events_by_store ON sales_events USING btree (organization_id, store_id, id);

CREATE INDEX sales_events_by_time ON sales_events USING btree (organization_id, occurred_at, id);

CREATE INDEX sales_totals_by_store ON sales_totals USING btree (organization_id, store_id, is_hour, day);

CREATE INDEX sales_totals_fills_due ON sales_totals_fills USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX segment_columns_due ON segment_columns USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX segment_columns_to_build ON segment_columns USING btree (build_at, organization_id) WHERE (build_at IS NOT NULL);

CREATE INDEX segment_columns_to_tidy ON segment_columns USING btree (tidy_at, organization_id) WHERE (tidy_at IS NOT NULL);

CREATE INDEX segment_keys_by_segment ON segment_keys USING btree (organization_id, segment_id);

CREATE INDEX segment_uses_by_user ON segment_uses USING btree (organization_id, user_kind, user_id);

CREATE INDEX segments_due ON segments USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX segments_due_here ON segments USING btree (organization_id, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX sent_text_months_by_origin ON sent_text_months USING btree (organization_id, origin_id, day);

CREATE INDEX sent_texts_by_origin ON sent_texts USING btree (organization_id, origin_id, day);

CREATE INDEX sessions_by_user ON sessions USING btree (user_id);

CREATE INDEX sign_in_failures_by_until ON sign_in_failures USING btree (until);

CREATE INDEX sign_in_links_by_organization ON sign_in_links USING btree (organization_id, created_at) WHERE (used_at IS NULL);

CREATE INDEX simulated_texts_by_number ON simulated_texts USING btree (organization_id, phone_number, id);

CREATE INDEX simulated_texts_of ON simulated_texts USING btree (organization_id, text_id);

CREATE INDEX sms_settings_due ON sms_settings USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX stopped_origins_due ON stopped_origins USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX stores_by_name ON stores USING btree (organization_id, "left"(lower(COALESCE(name, external_id)), 100) COLLATE "C", id);

CREATE INDEX subscriptions_by_change ON subscriptions USING btree (organization_id, updated_at, id);

CREATE INDEX subscriptions_by_profile ON subscriptions USING btree (organization_id, profile_id, id) WHERE (profile_id IS NOT NULL);

CREATE INDEX subscriptions_by_status ON subscriptions USING btree (organization_id, status, id);

CREATE INDEX subscriptions_by_status_and_change ON subscriptions USING btree (organization_id, status, updated_at, id);

CREATE INDEX subscriptions_forbidden ON subscriptions USING btree (organization_id, number_hash) WHERE ((status = 'UNSUBSCRIBED'::text) AND ((phone_number IS NULL) OR (latest_opt_in_at IS NULL)));

CREATE INDEX subscriptions_never_subscribed ON subscriptions USING btree (organization_id, number_hash) WHERE ((status = 'UNSUBSCRIBED'::text) AND ((phone_number IS NULL) OR (consented_at IS NULL)));

CREATE INDEX texts_by_profile ON texts USING btree (organization_id, profile_id, id) WHERE (profile_id IS NOT NULL);

CREATE INDEX texts_by_reason ON texts USING btree (organization_id, "substring"(reason, '^[a-z_]+'::text), id) WHERE (reason IS NOT NULL);

CREATE INDEX texts_due ON texts USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX texts_due_by_priority ON texts USING btree (organization_id, priority, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX texts_in_state ON texts USING btree (organization_id, state, id) WHERE (state = ANY (ARRAY['queued'::text, 'failed'::text, 'skipped'::text, 'unknown'::text]));

CREATE INDEX texts_kept_since ON texts USING btree (created_at, organization_id);

CREATE INDEX texts_naming_authors ON texts USING btree (created_at, organization_id) WHERE ((origin_kind = 'answer'::text) AND (strpos(step, ' '::text) > 0));

CREATE INDEX texts_of_number ON texts USING btree (organization_id, number_hash);

CREATE INDEX texts_on_their_way ON texts USING btree (organization_id, number_hash) WHERE (state = 'sending'::text);

CREATE INDEX texts_set_aside ON texts USING btree (organization_id, held_by, id) WHERE (held_by IS NOT NULL);

CREATE INDEX ticket_collision_totals_open ON ticket_collision_totals USING btree (organization_id, last_seen_at, sales_event_id) WHERE (reviewed_at IS NULL);

CREATE INDEX ticket_collision_totals_reviewed ON ticket_collision_totals USING btree (organization_id, last_seen_at, sales_event_id) WHERE (reviewed_at IS NOT NULL);

CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries USING btree (organization_id, endpoint_id) WHERE (owner IS NOT NULL);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries USING btree (due_at, organization_id) WHERE (due_at IS NOT NULL);

CREATE INDEX webhook_deliveries_failed ON webhook_deliveries USING btree (organization_id, endpoint_id, id) WHERE (state = 'failed'::text);

CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries USING btree (organization_id, endpoint_id, id);

CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries USING btree (organization_id, message_id);

CREATE INDEX webhook_deliveries_to_take ON webhook_deliveries USING btree (organization_id, endpoint_id, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX webhook_endpoints_to_probe ON webhook_endpoints USING btree (probe_at, organization_id) WHERE (probe_at IS NOT NULL);

CREATE INDEX webhook_messages_created_at ON webhook_messages USING brin (created_at) WITH (pages_per_range='32');

CREATE INDEX webhook_messages_of_profile ON webhook_messages USING btree (organization_id, profile_id) WHERE (profile_id IS NOT NULL);

CREATE INDEX webhook_messages_of_subscription ON webhook_messages USING btree (organization_id, subscription_id) WHERE (subscription_id IS NOT NULL);

ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);

ALTER TABLE ONLY link_prefixes
    ADD CONSTRAINT link_prefixes_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);

ALTER TABLE ONLY memberships
    ADD CONSTRAINT memberships_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);

ALTER TABLE ONLY memberships
    ADD CONSTRAINT memberships_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);

ALTER TABLE ONLY organization_slugs
    ADD CONSTRAINT organization_slugs_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);

ALTER TABLE ONLY recovery_codes
    ADD CONSTRAINT recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);

ALTER TABLE ONLY sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);

ALTER TABLE ONLY sign_in_links
    ADD CONSTRAINT sign_in_links_created_by_fkey FOREIGN KEY (created_by) REFERENCES users(id);

ALTER TABLE ONLY sign_in_links
    ADD CONSTRAINT sign_in_links_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id);

ALTER TABLE ONLY sign_in_places
    ADD CONSTRAINT sign_in_places_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id);
