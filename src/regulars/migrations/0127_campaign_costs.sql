-- oldest server: 0080
-- oldest worker: 0125
-- The exact cost of a campaign before it is sent: the worker renders its texts for the whole audience, page by page.

CREATE TABLE campaign_costs (
    organization_id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    -- Of the definition; the cost of another revision is no longer shown.
    revision integer NOT NULL,
    -- Where the next page of the audience begins. How many customers it has, and how many of them were rendered.
    next_page text,
    customers integer NOT NULL DEFAULT 0,
    rendered integer NOT NULL DEFAULT 0,
    -- Texts by variant, country and parts.
    counts json,
    -- Why the audience cannot be rendered.
    reason text,
    requested_at timestamptz NOT NULL,
    completed_at timestamptz,
    owner uuid,
    due_at timestamptz,
    PRIMARY KEY (organization_id, campaign_id)
);

CREATE INDEX campaign_costs_due ON campaign_costs (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX campaign_costs_due_here ON campaign_costs (organization_id, due_at, campaign_id)
    WHERE due_at IS NOT NULL;
