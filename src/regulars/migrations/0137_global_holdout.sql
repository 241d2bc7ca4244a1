-- oldest server: 0080
-- oldest worker: 0136
-- The global holdout: a share of the customers who may be texted is drawn each quarter and gets no text of campaigns,
-- nor of journeys where that is chosen. A row of `holdouts` is due when the next quarter is to be drawn.

CREATE TABLE holdouts (
    organization_id uuid PRIMARY KEY,
    percent smallint NOT NULL,
    with_journeys boolean NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text,
    due_at timestamptz,
    attempts integer NOT NULL DEFAULT 0
);

CREATE INDEX holdouts_due ON holdouts (due_at, organization_id) WHERE due_at IS NOT NULL;

CREATE TABLE holdout_quarters (
    organization_id uuid NOT NULL,
    quarter date NOT NULL,
    percent smallint NOT NULL,
    begins_on date NOT NULL,
    drawn_to uuid,
    drawn_at timestamptz,
    stopped_at timestamptz,
    customers integer NOT NULL DEFAULT 0,
    held_out integer NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, quarter)
);

CREATE TABLE holdout_customers (
    organization_id uuid NOT NULL,
    quarter date NOT NULL,
    profile_id uuid NOT NULL,
    is_held_out boolean NOT NULL,
    PRIMARY KEY (organization_id, quarter, profile_id)
);
