-- Which key seals the secrets of this database: its fingerprint, never the key.
CREATE TABLE vault_key (
    -- There is one key.
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    fingerprint text NOT NULL,
    created_at timestamptz NOT NULL
);
