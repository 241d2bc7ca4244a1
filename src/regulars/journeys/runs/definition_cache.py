"""Loads and caches the definitions of journeys, by journey and version. A version does not change."""

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from regulars.conditions.check import Fault
from regulars.conditions.documents import DefinitionRefused
from regulars.journeys import queries
from regulars.journeys.definition import Definition, read_stored_definition
from regulars.kit.bounded_cache import BoundedCache
from regulars.kit.db import Tx
from regulars.kit.refusals import NotFound

CACHED_VERSIONS_MAX: Final = 1_024


class Version(NamedTuple):
    definition: Definition
    # False in old versions, in which all splits divide the customers identically.
    has_independent_splits: bool
    # The stored parts that are not valid; runs do not follow a version that has any.
    damage: tuple[Fault, ...] = ()


_cache: Final = BoundedCache[tuple[UUID, UUID, int], Version](CACHED_VERSIONS_MAX)


async def load_definitions(
    tx: Tx, organization_id: UUID, keys: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Definition]:
    """The definitions that runs follow; raises `DefinitionRefused` if one is damaged."""
    versions = await load_versions(tx, organization_id, keys)
    return {it: version.definition for it, version in versions.items()}


async def load_shown_definitions(
    tx: Tx, organization_id: UUID, keys: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Definition]:
    """The definitions for a page, without parts that are not valid."""
    return {it: version.definition for it, version in (await _load(tx, organization_id, keys)).items()}


async def load_versions(
    tx: Tx, organization_id: UUID, keys: Collection[tuple[UUID, int]]
) -> dict[tuple[UUID, int], Version]:
    """The versions that runs follow; raises `DefinitionRefused` if one is damaged."""
    versions = await _load(tx, organization_id, keys)
    for version in versions.values():
        if version.damage:
            raise DefinitionRefused(version.damage)
    return versions


async def _load(tx: Tx, organization_id: UUID, keys: Collection[tuple[UUID, int]]) -> dict[tuple[UUID, int], Version]:
    loaded = {it: cached for it in keys if (cached := _cache.entries.get((organization_id, *it))) is not None}
    missing = sorted(set(keys) - loaded.keys())
    if missing:
        stored = await queries.find_definitions(tx, organization_id, missing)
        for journey_id, number in missing:
            if (journey_id, number) not in stored:
                raise NotFound(f"The version {number} of journey {journey_id} is gone.")
            text, has_independent_splits = stored[journey_id, number]
            definition, damage = read_stored_definition(text)
            version = loaded[journey_id, number] = Version(definition, has_independent_splits, tuple(damage))
            _cache.add((organization_id, journey_id, number), version)
    return loaded
