"""Journeys for tests of pages, made by the use cases."""

import json
from typing import Any
from uuid import UUID

from tests.support.aside import run_aside

from regulars.journeys.definition import Wait
from regulars.journeys.drafts.change import change_draft, fingerprint, load_draft
from regulars.journeys.drafts.tree import insert_step
from regulars.journeys.manage import activate, create_journey
from regulars.journeys.read import read_definition
from regulars.kit.db import Database
from regulars.kit.ids import JOURNEY


def write_on(database_url: str, organization_id: UUID, journey: str, *, by: str) -> None:
    """Leave an unsaved change in the draft: a step more at the end."""
    journey_id = JOURNEY.decode(journey)
    assert journey_id is not None

    async def write() -> None:
        database = Database(database_url, pool_max=2)
        await database.open()
        try:
            async with database.transaction() as tx:
                draft = await load_draft(tx, organization_id, journey_id)
                place = str(len(draft.definition.steps) + 1)
                await change_draft(
                    tx,
                    organization_id,
                    journey_id,
                    piece=lambda definition: definition,
                    was=fingerprint(draft.definition),
                    change=lambda definition: insert_step(definition, place, Wait(days=1)),
                    by=by,
                )
        finally:
            await database.close()

    run_aside(write())


def make_journey(
    database_url: str,
    organization_id: UUID,
    *steps: dict[str, Any],
    is_live: bool = True,
    trigger: str = "purchase",
    created_by: str | None = None,
    **more: Any,
) -> str:
    """Its canonical id."""
    given = {"name": "A journey", "trigger": trigger, "steps": list(steps), **more}
    definition = read_definition(json.dumps(given).encode())

    async def make() -> str:
        database = Database(database_url, pool_max=2)
        await database.open()
        try:
            async with database.transaction() as tx:
                made = await create_journey(tx, organization_id, definition, created_by=created_by)
                if is_live:
                    await activate(tx, organization_id, made.row.id)
                return JOURNEY.encode(made.row.id)
        finally:
            await database.close()

    return run_aside(make())
