"""The definitions that runs follow, by journey and version. A version never changes, so it is cached."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.journeys import queries
from regulars.journeys.definition import Definition, read_definition
from regulars.journeys.errors import JourneyNotFound
from regulars.kit.db import Tx

KNOWN_MAX: Final = 1_024
_known: dict[tuple[UUID, UUID, int], Definition] = {}


async def load_definitions(
    tx: Tx, organization_id: UUID, wanted: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Definition]:
    loaded = {it: known for it in wanted if (known := _known.get((organization_id, *it))) is not None}
    missing = sorted(set(wanted) - loaded.keys())
    if missing:
        texts = await queries.find_definitions(tx, organization_id, missing)
        for journey_id, version in missing:
            text = texts.get((journey_id, version))
            if text is None:
                raise JourneyNotFound(f"The version {version} of journey {journey_id} is gone.")
            definition = loaded[journey_id, version] = read_definition(text.encode())
            if len(_known) >= KNOWN_MAX:
                _known.pop(next(iter(_known)))
            _known[organization_id, journey_id, version] = definition
    return loaded
