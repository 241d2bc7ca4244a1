-- oldest server: 0080
-- oldest worker: 0122
-- Test texts to numbers of the team. A worker of the release before does not know their origin, so it stops. The new list
-- of origins holds the old one, so no row has to be checked.

SET LOCAL lock_timeout = '5s';

ALTER TABLE texts
    DROP CONSTRAINT texts_origin_kind_check,
    ADD CONSTRAINT texts_origin_kind_check
        CHECK (origin_kind IN ('person', 'journey', 'campaign', 'stop', 'help', 'answer', 'test')) NOT VALID;

-- The number on which a member of the team gets test texts. It is verified for a provider: a code in the simulator proves
-- nothing about a telephone.
CREATE TABLE test_numbers (
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    phone_number text NOT NULL,
    number_hash bytea NOT NULL,
    provider text NOT NULL,
    -- The origin of the text with the code, which is derived from it.
    code_id uuid NOT NULL,
    code_until timestamptz NOT NULL,
    attempts smallint NOT NULL,
    verified_at timestamptz,
    PRIMARY KEY (organization_id, user_id)
);
