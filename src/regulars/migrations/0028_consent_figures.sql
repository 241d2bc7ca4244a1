-- Counts over all subscriptions of an organization: made by the worker when a page asks for them, and kept until they
-- are asked for again and too old. Nothing is counted while nobody looks.
CREATE TABLE consent_figures (
    organization_id uuid PRIMARY KEY,
    -- The zone in which days begin for whoever asked last.
    time_zone text NOT NULL,
    due_at timestamptz,
    counted_at timestamptz,
    took_ms integer,
    figures json
);
CREATE INDEX consent_figures_due ON consent_figures (due_at, organization_id) WHERE due_at IS NOT NULL;
