-- oldest server: 0080
-- oldest worker: 0161
-- One way to pause: a stop is one row, and the queue sets aside what it meets. A worker of the release before would not
-- see that a journey is paused, so it stops.

SET LOCAL lock_timeout = '5s';

-- The journey or campaign that requested the text; and what a text that was set aside waits for: the end of the pause of
-- that journey, or of the hold of the organization.
ALTER TABLE texts ADD COLUMN document_id uuid, ADD COLUMN held_by uuid;

-- When the next rows are made due that the stop has set aside, after it ended. Without a time the stop is in force. Stops
-- are also of journeys now, and of an organization whose hold has ended.
ALTER TABLE stopped_origins ADD COLUMN due_at timestamptz;
CREATE INDEX stopped_origins_due ON stopped_origins (due_at, organization_id) WHERE due_at IS NOT NULL;

INSERT INTO stopped_origins (organization_id, origin_id, stopped_at)
SELECT organization_id, id, COALESCE(paused_at, updated_at) FROM journeys WHERE state = 'paused'
ON CONFLICT (organization_id, origin_id) DO NOTHING;

UPDATE texts
SET document_id = journey_runs.journey_id,
    held_by = CASE WHEN texts.is_paused AND texts.state = 'queued' THEN journey_runs.journey_id END,
    due_at = CASE WHEN texts.is_paused AND texts.state = 'queued' THEN texts.expires_at ELSE texts.due_at END
FROM journey_runs
WHERE journey_runs.organization_id = texts.organization_id AND journey_runs.id = texts.origin_id
  AND texts.origin_kind = 'journey' AND texts.state IN ('queued', 'sending');
