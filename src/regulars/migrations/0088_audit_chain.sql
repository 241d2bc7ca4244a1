-- oldest server: 0080
-- oldest worker: 0080
-- A hash chain over the audit log of each organization. `commitments` are three HMACs, of the address, the actor and the
-- subject with its change; each has a salt of its own, so that the content can go and the chain still verifies. Rows from
-- before, and those of a release that still runs, have none of these.

ALTER TABLE audit_log
    ADD COLUMN sequence bigint,
    ADD COLUMN address_salt bytea,
    ADD COLUMN actor_salt bytea,
    ADD COLUMN subject_salt bytea,
    ADD COLUMN commitments bytea,
    ADD COLUMN hash bytea,
    -- Since when there is an address to delete.
    ADD COLUMN address_since timestamptz GENERATED ALWAYS AS (CASE WHEN address IS NOT NULL THEN at END) STORED;

CREATE UNIQUE INDEX audit_log_chain ON audit_log (organization_id, sequence);
CREATE INDEX audit_log_addresses ON audit_log (address_since, organization_id) WHERE address_since IS NOT NULL;

-- The end of each chain: whoever appends locks it.
CREATE TABLE audit_heads (
    organization_id uuid PRIMARY KEY,
    sequence bigint NOT NULL,
    hash bytea NOT NULL
);
