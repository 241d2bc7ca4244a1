-- oldest server: 0080
-- oldest worker: 0080
-- The address at which callers and people reach the server, for installations that do not set it in the environment.
CREATE TABLE public_address (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    url text,
    changed_at timestamptz NOT NULL,
    -- The check in progress: the server calls itself with a nonce, and must get the answer. Only the newest one counts.
    nonce_hash bytea,
    answer text,
    nonce_expires_at timestamptz
);
