-- oldest server: 0080
-- oldest worker: 0080
-- New recovery codes have a salt each; those without one are hashed plainly and stay valid.
ALTER TABLE recovery_codes ADD COLUMN salt bytea;

-- When the password was last given in a session; NULL is when it began.
ALTER TABLE sessions ADD COLUMN confirmed_at timestamptz;

-- Whether owners and admins need a second factor to enter.
ALTER TABLE organizations ADD COLUMN requires_second_factor boolean NOT NULL DEFAULT false;
