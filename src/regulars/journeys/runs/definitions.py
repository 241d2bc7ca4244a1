"""The definitions that runs follow, by journey and version; a version never changes, so it is read once."""

from collections.abc import Collection
from uuid import UUID

from regulars.journeys import queries
from regulars.journeys.definition import Definition
from regulars.journeys.errors import JourneyNotFound
from regulars.journeys.read import read_definition
from regulars.kit.db import Tx


async def load_definitions(
    tx: Tx, organization_id: UUID, wanted: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Definition]:
    found: dict[tuple[UUID, int], Definition] = {}
    for journey_id, version in sorted(wanted):
        text = await queries.find_definition(tx, organization_id, journey_id, version)
        if text is None:
            raise JourneyNotFound(f"The version {version} of journey {journey_id} is gone.")
        found[journey_id, version] = read_definition(text.encode())
    return found
