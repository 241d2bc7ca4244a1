"""What journeys tell the rooms below about themselves: which they are, and what a change of a segment does to them."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.journeys import queries
from regulars.journeys.manage import KIND
from regulars.kit.db import Tx
from regulars.kit.ids import JOURNEY
from regulars.segments.kept.uses import Use

PATH: Final = "/journeys"
LISTED_MAX: Final = 200
EFFECTS: Final = {
    "live": "It asks the new version from the next decision on; whoever is in it stays until a branch asks.",
    "paused": "It asks the new version when it goes on.",
    "draft": "It is not live; it will ask whatever is saved then.",
}


async def describe_uses(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, Use]:
    """Journeys by their ids, as users of a segment."""
    rows = await queries.find_journeys(tx, organization_id, ids)
    return {
        row.id: Use(row.name, f"{PATH}/{JOURNEY.encode(row.id)}", KIND, row.state, EFFECTS.get(row.state, ""))
        for row in rows
    }


async def list_choices(tx: Tx, organization_id: UUID) -> list[tuple[str, str]]:
    """The journeys that a condition about texts may name: id and name, the newest first."""
    rows = await queries.list_journeys(tx, organization_id, limit=LISTED_MAX)
    return [(JOURNEY.encode(row.id), row.name) for row in rows]
