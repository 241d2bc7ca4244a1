"""The definitions that runs follow, by journey and version; a version never changes, so it is read once."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.journeys import queries
from regulars.journeys.definition import Definition
from regulars.journeys.errors import JourneyNotFound
from regulars.journeys.read import read_definition
from regulars.kit.db import Tx

KNOWN_MAX: Final = 1_024
_known: dict[tuple[UUID, UUID, int], Definition] = {}


async def load_definitions(
    tx: Tx, organization_id: UUID, wanted: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Definition]:
    return {
        (journey_id, version): await _load(tx, organization_id, journey_id, version)
        for journey_id, version in sorted(wanted)
    }


async def _load(tx: Tx, organization_id: UUID, journey_id: UUID, version: int) -> Definition:
    known = _known.get((organization_id, journey_id, version))
    if known is not None:
        return known
    text = await queries.find_definition(tx, organization_id, journey_id, version)
    if text is None:
        raise JourneyNotFound(f"The version {version} of journey {journey_id} is gone.")
    definition = read_definition(text.encode())
    if len(_known) >= KNOWN_MAX:
        _known.pop(next(iter(_known)))
    _known[organization_id, journey_id, version] = definition
    return definition
