"""Inserts journeys with hundreds of thousands of runs and their traces, for the texts that `messages.py` inserts."""

import json
from typing import Any
from uuid import UUID

from bulk import Connection, without_indexes
from regulars.journeys.definition import Definition, Wait, read_definition
from regulars.journeys.drafts import lock_draft, write_draft
from regulars.journeys.journey_templates import JOURNEY_TEMPLATES
from regulars.journeys.manage import activate, create_journey, pause, update_journey
from regulars.journeys.step_tree import insert_step
from regulars.kit.db import Database, Tx

JOURNEYS = ("journey_runs", "journey_trace", "journey_customers")
LIVE = 5
BY = "bench"
STEPS: list[dict[str, Any]] = [
    {"do": "wait", "id": "wait", "days": 1},
    {
        "do": "branch",
        "id": "ask",
        "if": {"type": "subscribed"},
        "then": [
            {"do": "send_text", "id": "send", "text": 'Thank you, {{ profile.first_name | default("there") }}.'},
            {"do": "wait_for_purchase", "id": "back", "days": 30, "then": [], "else": [{"do": "exit"}]},
        ],
        "else": [{"do": "set_attribute", "id": "mark", "key": "ask_consent_at_till", "value": "true"}],
    },
]

# The runs own the last texts. Most runs have ended, most others wait, and a few need a user.
RUNS = """
INSERT INTO journey_runs (organization_id, id, journey_id, version, fact_kind, fact_id, profile_id, sale_id, state,
                          step, waits_for, waiting_since, due_at, outcome, reason, entered_at, ended_at, fact_at)
SELECT t.organization_id, t.origin_id, (%(journeys)s::uuid[])[1 + t.place %% cardinality(%(journeys)s::uuid[])], 1,
       CASE WHEN s.id IS NULL THEN 'consent' ELSE 'sale' END, COALESCE(s.external_id, 'filled-' || t.place),
       t.profile_id, s.id, t.state, CASE WHEN t.state = 'ended' THEN 'back' ELSE 'wait' END,
       CASE WHEN t.state = 'active' THEN 'time' END, CASE WHEN t.state = 'active' THEN t.created_at END,
       CASE WHEN t.state = 'active' THEN now() + interval '1 day' END, CASE WHEN t.state = 'ended' THEN 'completed' END,
       CASE WHEN t.state = 'parked' THEN 'The step failed eight times.' END, t.created_at,
       CASE WHEN t.state = 'ended' THEN t.created_at + interval '2 days' END, t.created_at
FROM (
    SELECT organization_id, origin_id, profile_id, created_at,
           row_number() OVER (ORDER BY id DESC) AS place,
           row_number() OVER (PARTITION BY profile_id ORDER BY id DESC) AS times,
           CASE WHEN get_byte(uuid_send(id), 15) < 200 THEN 'ended' WHEN get_byte(uuid_send(id), 15) < 254 THEN 'active'
                ELSE 'parked' END AS state
    FROM texts WHERE organization_id = %(organization_id)s AND origin_kind = 'journey' AND profile_id IS NOT NULL
    ORDER BY id DESC LIMIT %(runs)s
) AS t
LEFT JOIN LATERAL (
    SELECT id, external_id FROM sales_events
    WHERE organization_id = %(organization_id)s AND profile_id = t.profile_id
    ORDER BY id DESC OFFSET t.times - 1 LIMIT 1
) AS s ON true
"""
TRACE = """
INSERT INTO journey_trace (organization_id, run_id, sequence, at, step, event, detail)
SELECT r.organization_id, r.id, line.sequence, r.entered_at + line.sequence * interval '1 hour', line.step, line.event,
       line.detail::json
FROM journey_runs r CROSS JOIN (VALUES
    (1, NULL, 'entered', '{"version": 1}'), (2, 'wait', 'waits', '{"until": "2026-11-01T10:00:00+00:00"}'),
    (3, 'wait', 'went on', '{}'), (4, 'ask', 'then', '{"subscribed": true}'), (5, 'send', 'texts', '{}'),
    (6, 'back', 'waits', '{"for": "a purchase", "until": "2026-11-20T10:00:00+00:00"}'),
    (7, 'back', 'ended', '{"outcome": "completed"}')
) AS line (sequence, step, event, detail)
WHERE r.organization_id = %(organization_id)s AND (r.state = 'ended' OR line.sequence <= 2)
"""
CUSTOMERS = """
INSERT INTO journey_customers (organization_id, journey_id, profile_id, entered_at, run_id)
SELECT DISTINCT ON (journey_id, profile_id) organization_id, journey_id, profile_id, entered_at, id FROM journey_runs
WHERE organization_id = %(organization_id)s ORDER BY journey_id, profile_id, id DESC
"""
TOTALS = """
INSERT INTO journey_totals (organization_id, journey_id, version, step, event, times)
SELECT r.organization_id, r.journey_id, 1, COALESCE(t.step, ''), t.event, count(*)
FROM journey_trace t JOIN journey_runs r ON r.organization_id = t.organization_id AND r.id = t.run_id
WHERE t.organization_id = %(organization_id)s GROUP BY 1, 2, 4, 5
"""


async def make_journeys(database: Database, organization_id: UUID) -> list[UUID]:
    """Creates live journeys in several versions, one with an unsaved change, a paused one, and drafts. Returns the ids
    of those that get runs."""
    async with database.transaction() as tx:
        for template in JOURNEY_TEMPLATES[1:]:
            await create_journey(tx, organization_id, template.definition, created_by=BY)
        entered = [await _make_live(tx, organization_id, number) for number in range(LIVE)]
        await pause(tx, organization_id, entered[0])
        draft = await lock_draft(tx, organization_id, entered[-1])
        await write_draft(tx, organization_id, draft, insert_step(draft.definition, "3", Wait(days=1)), by=BY)
        # The newest journey is a draft, so that a crawl of the pages opens one.
        await create_journey(tx, organization_id, JOURNEY_TEMPLATES[0].definition, created_by=BY)
    return entered


def fill_runs(connection: Connection, organization_id: UUID, journeys: list[UUID], runs: int) -> None:
    """Inserts the runs to which the texts belong."""
    values = {"organization_id": organization_id, "journeys": journeys, "runs": runs}
    with without_indexes(connection, JOURNEYS):
        connection.execute("ANALYZE sales_events, texts")
        connection.execute(RUNS, values)
        connection.execute("ANALYZE journey_runs")
        for statement in (TRACE, CUSTOMERS, TOTALS):
            connection.execute(statement, values)


async def _make_live(tx: Tx, organization_id: UUID, number: int) -> UUID:
    made = await create_journey(tx, organization_id, _definition(f"Thank you {number}", days=1), created_by=BY)
    await activate(tx, organization_id, made.row.id)
    for days in (2, 3):
        changed = _definition(f"Thank you {number}", days=days)
        await update_journey(tx, organization_id, made.row.id, changed, created_by=BY)
    return made.row.id


def _definition(name: str, *, days: int) -> Definition:
    steps = [{**STEPS[0], "days": days}, *STEPS[1:]]
    return read_definition(json.dumps({"name": name, "trigger": "purchase", "steps": steps}).encode())
