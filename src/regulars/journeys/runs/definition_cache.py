"""The definitions that runs follow, by journey and version. A version never changes, so it is cached."""

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from regulars.journeys import queries
from regulars.journeys.definition import Definition, read_definition
from regulars.journeys.errors import JourneyNotFound
from regulars.kit.db import Tx

KNOWN_MAX: Final = 1_024


class Version(NamedTuple):
    definition: Definition
    # Splits of versions from before this was stored divide the customers of a journey all in the same way.
    salts_splits: bool


_known: dict[tuple[UUID, UUID, int], Version] = {}


async def load_definitions(
    tx: Tx, organization_id: UUID, wanted: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Definition]:
    versions = await load_versions(tx, organization_id, wanted)
    return {it: version.definition for it, version in versions.items()}


async def load_versions(
    tx: Tx, organization_id: UUID, wanted: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Version]:
    loaded = {it: known for it in wanted if (known := _known.get((organization_id, *it))) is not None}
    missing = sorted(set(wanted) - loaded.keys())
    if missing:
        found = await queries.find_definitions(tx, organization_id, missing)
        for journey_id, number in missing:
            if (journey_id, number) not in found:
                raise JourneyNotFound(f"The version {number} of journey {journey_id} is gone.")
            text, salts_splits = found[journey_id, number]
            version = loaded[journey_id, number] = Version(read_definition(text.encode()), salts_splits)
            if len(_known) >= KNOWN_MAX:
                _known.pop(next(iter(_known)))
            _known[organization_id, journey_id, number] = version
    return loaded
