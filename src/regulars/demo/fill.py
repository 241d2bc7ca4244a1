"""The whole demo: the chain and its people, and the automations that they are in."""

from uuid import UUID

from regulars.demo.automation import begin_journeys, create_segments, go_on
from regulars.demo.load import Progress, Story, load_demo
from regulars.demo.mark import mark
from regulars.demo.traffic import collide, leave_requests
from regulars.kit.db import Database
from regulars.kit.vault import AnyVault


async def fill(
    database: Database,
    organization_id: UUID,
    story: Story,
    *,
    secret: bytes,
    vault: AnyVault | None,
    progress: Progress,
) -> None:
    """Without a vault there is no endpoint, whose secret it would seal."""
    await mark(database, organization_id)
    is_ours = await begin_journeys(database, organization_id)
    last = await load_demo(database, organization_id, story, secret=secret, progress=progress)
    await leave_requests(database, organization_id, story.seed)
    await collide(database, organization_id, last)
    if is_ours:
        await create_segments(database, organization_id)
        await go_on(database, organization_id, vault=vault)
