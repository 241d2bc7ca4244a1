"""Loads and caches the definitions that runs follow, by journey and version. A version does not change."""

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from regulars.journeys import queries
from regulars.journeys.definition import Definition, read_definition
from regulars.journeys.errors import JourneyNotFound
from regulars.kit.db import Tx

CACHED_VERSIONS_MAX: Final = 1_024


class Version(NamedTuple):
    definition: Definition
    # False in old versions, in which all splits divide the customers identically.
    has_independent_splits: bool


_cache: dict[tuple[UUID, UUID, int], Version] = {}


async def load_definitions(
    tx: Tx, organization_id: UUID, keys: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Definition]:
    versions = await load_versions(tx, organization_id, keys)
    return {it: version.definition for it, version in versions.items()}


async def load_versions(
    tx: Tx, organization_id: UUID, keys: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Version]:
    loaded = {it: cached for it in keys if (cached := _cache.get((organization_id, *it))) is not None}
    missing = sorted(set(keys) - loaded.keys())
    if missing:
        stored = await queries.find_definitions(tx, organization_id, missing)
        for journey_id, number in missing:
            if (journey_id, number) not in stored:
                raise JourneyNotFound(f"The version {number} of journey {journey_id} is gone.")
            text, has_independent_splits = stored[journey_id, number]
            version = loaded[journey_id, number] = Version(read_definition(text.encode()), has_independent_splits)
            if len(_cache) >= CACHED_VERSIONS_MAX:
                _cache.pop(next(iter(_cache)))
            _cache[organization_id, journey_id, number] = version
    return loaded
