"""Creates journeys and campaigns for tests of pages, with the use cases of the application."""

import json
from typing import Any, TypeVar
from uuid import UUID

from tests.support.open_database import in_transaction

from regulars.campaigns.definition import read_definition as read_campaign
from regulars.campaigns.manage import create_campaign
from regulars.journeys.definition import Wait, read_definition
from regulars.journeys.drafts import lock_draft, write_draft
from regulars.journeys.manage import activate, create_journey
from regulars.journeys.step_tree import insert_step
from regulars.kit import vault
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, SEGMENT, new_uuid
from regulars.kit.settings import Settings
from regulars.kit.ssrf import AddressPolicy
from regulars.webhooks.manage import create_endpoint

T = TypeVar("T")


def change_draft(database_url: str, organization_id: UUID, journey: str, *, by: str) -> None:
    """Adds a step to the draft, as an unsaved change."""
    journey_id = JOURNEY.decode(journey)
    assert journey_id is not None

    async def act(tx: Tx) -> None:
        draft = await lock_draft(tx, organization_id, journey_id)
        place = str(len(draft.definition.steps) + 1)
        await write_draft(tx, organization_id, draft, insert_step(draft.definition, place, Wait(days=1)), by=by)

    in_transaction(database_url, act)


def add_endpoint(database_url: str, organization_id: UUID, settings: Settings) -> None:
    """Creates a webhook endpoint at an unreachable address."""

    async def act(tx: Tx) -> None:
        url = "https://hooks.invalid/regulars"
        await create_endpoint(tx, organization_id, url=url, policy=AddressPolicy(), vault=vault.of(settings))

    in_transaction(database_url, act)


def make_campaign(database_url: str, organization_id: UUID, *, segment: str | None = None, **more: Any) -> str:
    """Creates a draft; returns its canonical id."""
    include = [segment or SEGMENT.encode(new_uuid())]
    given = {"name": "A campaign", "include": include, "variants": [{"text": "Hello"}], **more}
    definition = read_campaign(json.dumps(given).encode())

    async def act(tx: Tx) -> str:
        return CAMPAIGN.encode((await create_campaign(tx, organization_id, definition)).row.id)

    return in_transaction(database_url, act)


def make_journey(
    database_url: str,
    organization_id: UUID,
    *steps: dict[str, Any],
    is_live: bool = True,
    trigger: str = "purchase",
    created_by: str | None = None,
    **more: Any,
) -> str:
    """Creates a journey; returns its canonical id."""
    given = {"name": "A journey", "trigger": trigger, "steps": list(steps), **more}
    definition = read_definition(json.dumps(given).encode())

    async def act(tx: Tx) -> str:
        made = await create_journey(tx, organization_id, definition, created_by=created_by)
        if is_live:
            await activate(tx, organization_id, made.row.id)
        return JOURNEY.encode(made.row.id)

    return in_transaction(database_url, act)
