-- Each segment is counted once a day; `due_at` is when, and `owner` whoever counts it now.

ALTER TABLE segments ADD COLUMN due_at timestamptz, ADD COLUMN owner uuid;

CREATE INDEX segments_due ON segments (due_at, organization_id) WHERE due_at IS NOT NULL;
CREATE INDEX segments_due_here ON segments (organization_id, due_at, id) WHERE due_at IS NOT NULL;
