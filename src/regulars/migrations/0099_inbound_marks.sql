-- oldest server: 0080
-- oldest worker: 0080
-- Keyed hashes of the provider's ids of replies that an erasure deleted: the provider's own list still has them, and
-- what is read there again must not bring the person back.
CREATE TABLE erased_replies (
    organization_id uuid NOT NULL,
    message_hash bytea NOT NULL,
    erased_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, message_hash)
);

CREATE INDEX erased_replies_kept_since ON erased_replies (erased_at, organization_id);

-- How far the provider's list of replies was read, for each sender, and why it cannot be read.
ALTER TABLE sms_settings ADD COLUMN inbound json;
