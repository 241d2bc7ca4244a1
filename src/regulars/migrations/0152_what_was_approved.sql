-- oldest server: 0080
-- oldest worker: 0145
-- Who changed a campaign, and what an approval covers. An approval of before covers nothing. Who changed a campaign before
-- is known only from its first and its last change.
ALTER TABLE campaigns
    ADD COLUMN changed_by text[] NOT NULL DEFAULT '{}',
    ADD COLUMN approved_at timestamptz,
    ADD COLUMN approved_recipients integer,
    ADD COLUMN approved_cost json,
    ADD COLUMN approved_segments json;
UPDATE campaigns SET changed_by = array_remove(ARRAY[created_by, updated_by], NULL);
