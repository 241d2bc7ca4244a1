-- oldest server: 0080
-- oldest worker: 0145
-- Less disk for each recipient of a campaign. The primary key begins with the campaign, in whose order recipients are stored
-- and read; a person is looked up in each campaign. The table is locked while the key is built: no release has campaigns
-- yet, so it is empty or small.

-- Shared by some 1,000 recipients whose profile ids follow each other; 0 for all recipients of before.
ALTER TABLE campaign_recipients ADD COLUMN block integer NOT NULL DEFAULT 0;
ALTER TABLE campaign_recipients DROP CONSTRAINT campaign_recipients_pkey;
ALTER TABLE campaign_recipients
    ADD CONSTRAINT campaign_recipients_pkey PRIMARY KEY (organization_id, campaign_id, profile_id);
