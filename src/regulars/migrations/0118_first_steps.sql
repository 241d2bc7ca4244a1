-- oldest server: 0080
-- oldest worker: 0110
-- The navigation shows first steps until a person dismisses them. Organizations that exist are past them; new ones are
-- not.
ALTER TABLE organizations ADD COLUMN shows_first_steps boolean DEFAULT false NOT NULL;
ALTER TABLE organizations ALTER COLUMN shows_first_steps SET DEFAULT true;
