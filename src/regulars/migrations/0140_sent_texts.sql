-- oldest server: 0080
-- oldest worker: 0125
-- How many texts left, and their parts, by what sent them, day and country: what they cost. Texts are deleted after a time
-- or with an erased person; these sums stay.

CREATE TABLE sent_texts (
    organization_id uuid NOT NULL,
    -- When they left, in the organization's time zone.
    day date NOT NULL,
    -- A campaign, a journey with its step, or a person: then the id is all zeros.
    origin_kind text NOT NULL CHECK (origin_kind IN ('campaign', 'journey', 'person')),
    origin_id uuid NOT NULL,
    step text NOT NULL,
    country text NOT NULL,
    texts bigint NOT NULL,
    parts bigint NOT NULL,
    PRIMARY KEY (organization_id, day, origin_kind, origin_id, step, country)
) WITH (fillfactor = 70);

CREATE INDEX sent_texts_by_origin ON sent_texts (organization_id, origin_id, day);
