"""Inserts a finished and a paused campaign with hundreds of thousands of recipients, and a draft."""

import json
from uuid import UUID

from bulk import Connection
from regulars.campaigns.definition import read_definition
from regulars.campaigns.manage import create_campaign
from regulars.kit.db import Database
from regulars.kit.ids import SEGMENT
from regulars.segments.saved.manage import list_segments

BY = "bench"
STATES = ("draft", "paused", "ended")

# The paused campaign has waiting recipients; most others got their text.
RECIPIENTS = """
INSERT INTO campaign_recipients (organization_id, campaign_id, profile_id, open_at, fed_at, created_at, position, block,
                                 arm, parts, outcome, reason, country)
SELECT %(organization_id)s, %(campaign)s, p.profile_id, now(), CASE WHEN p.outcome = 'waiting' THEN NULL ELSE now() END,
       now(), p.place, p.place / 1000, 1, CASE WHEN p.outcome IN ('sent', 'delivered') THEN 1 ELSE 0 END, p.outcome,
       CASE WHEN p.outcome = 'skipped' THEN 'cap' ELSE '' END, 'FR'
FROM (
    SELECT profile_id, row_number() OVER (ORDER BY profile_id) AS place,
           CASE WHEN %(state)s = 'paused' AND get_byte(uuid_send(id), 15) < 100 THEN 'waiting'
                WHEN get_byte(uuid_send(id), 15) < 200 THEN 'delivered'
                WHEN get_byte(uuid_send(id), 15) < 230 THEN 'sent' ELSE 'skipped' END AS outcome
    FROM (
        SELECT DISTINCT ON (profile_id) profile_id, id FROM subscriptions
        WHERE organization_id = %(organization_id)s AND profile_id IS NOT NULL AND status = 'SUBSCRIBED'
        ORDER BY profile_id LIMIT %(recipients)s
    ) AS member
) AS p
"""
TEXTS = """
INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, profile_id, number_hash, phone_number, body,
                   parts, state, reason, expires_at, created_at, claimed_at, ended_at, provider, priority)
SELECT r.organization_id, gen_random_uuid(), 'campaign', r.campaign_id, r.profile_id::text, r.profile_id, s.number_hash,
       s.phone_number, 'The new collection is here.', 1, r.outcome, nullif(r.reason, ''), now(), now(), now(), now(),
       'simulator', 2
FROM campaign_recipients AS r
CROSS JOIN LATERAL (
    SELECT number_hash, phone_number FROM subscriptions
    WHERE organization_id = r.organization_id AND profile_id = r.profile_id LIMIT 1
) AS s
WHERE r.organization_id = %(organization_id)s AND r.campaign_id = %(campaign)s AND r.fed_at IS NOT NULL
"""
# The newest text failed, so that a link leads to the page that sends it again.
FAILED = """
UPDATE texts SET state = 'failed', reason = 'refused 30003: unreachable'
WHERE organization_id = %(organization_id)s
  AND id = (SELECT id FROM texts WHERE organization_id = %(organization_id)s ORDER BY id DESC LIMIT 1)
"""
TOTALS = """
INSERT INTO campaign_totals (organization_id, campaign_id, arm, outcome, reason, country, recipients, parts)
SELECT organization_id, campaign_id, arm, outcome, reason, country, count(*), sum(parts)
FROM campaign_recipients WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign)s
GROUP BY 1, 2, 3, 4, 5, 6
"""
STATE = """
UPDATE campaigns SET state = %(state)s, resumes_to = CASE WHEN %(state)s = 'paused' THEN 'sending' END,
    starts_at = now(), frozen_at = now(), not_after = now() + interval '2 days', recipients = %(recipients)s,
    confirmed_recipients = %(recipients)s, confirmed_by = 'bench',
    ended_at = CASE WHEN %(state)s = 'ended' THEN now() END
WHERE organization_id = %(organization_id)s AND id = %(campaign)s
"""


async def make_campaigns(database: Database, organization_id: UUID) -> dict[str, UUID]:
    """Creates campaigns by state, all drafts until `fill_campaigns`. The newest is the draft, first in lists."""
    made = {}
    async with database.transaction() as tx:
        segment = (await list_segments(tx, organization_id))[0]
        for state in reversed(STATES):
            given = {
                "name": f"Spring, {state}",
                "include": [SEGMENT.encode(segment.id)],
                "variants": [{"text": "Hello"}],
            }
            definition = read_definition(json.dumps(given).encode())
            made[state] = (await create_campaign(tx, organization_id, definition, created_by=BY)).row.id
    return made


def fill_campaigns(connection: Connection, organization_id: UUID, campaigns: dict[str, UUID], recipients: int) -> None:
    for state, campaign_id in campaigns.items():
        if state != "draft":
            values = {
                "organization_id": organization_id,
                "campaign": campaign_id,
                "state": state,
                "recipients": recipients,
            }
            for statement in (RECIPIENTS, TEXTS, TOTALS, STATE):
                connection.execute(statement, values)  # type: ignore[arg-type]  # literals of this file
    connection.execute(FAILED, {"organization_id": organization_id})
    connection.execute("VACUUM ANALYZE campaign_recipients, campaign_totals, texts")
