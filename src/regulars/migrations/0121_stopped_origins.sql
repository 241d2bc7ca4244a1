-- oldest server: 0080
-- oldest worker: 0121
-- Origins of texts that may not send: a campaign that is paused (no reason) or cancelled (its texts are skipped with the
-- reason). A worker of the release before does not look here, so it stops.
CREATE TABLE stopped_origins (
    organization_id uuid NOT NULL,
    origin_id uuid NOT NULL,
    reason text,
    stopped_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, origin_id)
);

-- How many parts each sender may send at once: the tokens at a moment. They go below zero with a text of several parts
-- and with replies, which are never refused.
CREATE TABLE sender_rates (
    organization_id uuid NOT NULL,
    sender text NOT NULL,
    tokens double precision NOT NULL,
    refilled_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, sender)
);
