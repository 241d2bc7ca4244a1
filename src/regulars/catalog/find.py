"""Read the catalogs."""

from collections.abc import Collection
from uuid import UUID

from regulars.catalog import queries
from regulars.catalog.model import AttributeType, Catalog, CatalogEntry, KeyFilter
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows


async def find_entry(tx: Tx, organization_id: UUID, catalog: Catalog, key: str) -> CatalogEntry | None:
    if "\0" in key:
        # PostgreSQL cannot even be asked for it.
        return None
    found = await queries.find_entries(tx, organization_id, catalog, [key])
    return found[0] if found else None


async def find_attributes(tx: Tx, organization_id: UUID, keys: list[str]) -> dict[str, CatalogEntry]:
    """How these attributes are read; one that is not declared is missing."""
    found = await queries.find_entries(tx, organization_id, Catalog.ATTRIBUTES, keys)
    return {entry.key: entry for entry in found}


async def list_entries(tx: Tx, organization_id: UUID, catalog: Catalog, *, limit: int) -> list[CatalogEntry]:
    """The first keys in their order."""
    return await queries.list_entries(tx, organization_id, catalog, PageRequest(limit), KeyFilter())


async def browse_entries(
    tx: Tx, organization_id: UUID, catalog: Catalog, page: PageRequest, wanted: KeyFilter
) -> PageRows[CatalogEntry]:
    """A page of the keys in their order."""
    return await queries.list_entries(tx, organization_id, catalog, page, wanted)


async def count_entries(tx: Tx, organization_id: UUID, catalog: Catalog, *, at_most: int) -> int:
    return await queries.count_entries(tx, organization_id, catalog, at_most=at_most)


async def find_types(
    tx: Tx, organization_id: UUID, catalog: Catalog, keys: Collection[str]
) -> dict[str, tuple[AttributeType, Collection[str]]]:
    """How these keys are read: the declared type, and for an enum its values. One that is not declared is missing."""
    askable = sorted(key for key in keys if "\0" not in key)
    found = await queries.find_entries(tx, organization_id, catalog, askable) if askable else []
    return {entry.key: (entry.type, entry.allowed_values) for entry in found}
