"""Find stores by what callers call them."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.ids import STORE, ByExternalId, ById, Reference, split_references
from regulars.kit.keyset import PageRequest, PageRows
from regulars.stores import queries
from regulars.stores.model import Address, NamedStore, Store, StoreRef

STORES_MAX: Final = 10_000

# So many are looked at for a word that few of them have.
LOOKED_AT_MAX: Final = 5_000


async def find_stores(tx: Tx, organization_id: UUID, references: Collection[Reference]) -> dict[Reference, StoreRef]:
    """The stores that the references name; a reference that names none is absent."""
    ids, external_ids = split_references(references)
    found: dict[Reference, StoreRef] = {}
    if ids:
        for store in await queries.find_store_refs_by_id(tx, organization_id, ids):
            found[ById(store.id)] = store
    if external_ids:
        for store in await queries.find_store_refs_by_external_id(tx, organization_id, external_ids):
            found[ByExternalId(store.external_id)] = store
    return found


async def find_store(tx: Tx, organization_id: UUID, reference: Reference) -> Store | None:
    if isinstance(reference, ById):
        return None if reference.id is None else await queries.find_store_by_id(tx, organization_id, reference.id)
    if "\0" in reference.external_id:
        return None
    return await queries.find_store_by_external_id(tx, organization_id, reference.external_id)


async def list_stores(tx: Tx, organization_id: UUID, *, after: UUID | None, limit: int) -> list[Store]:
    """Stores in the order of their creation, from the one after `after` on."""
    return await queries.list_stores(tx, organization_id, after=after, limit=limit)


async def find_addresses(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, Address]:
    """Where these stores are; those without an address are absent."""
    return await queries.find_addresses(tx, organization_id, sorted(ids)) if ids else {}


async def find_addresses_in(tx: Tx, organization_id: UUID, country: str) -> list[Address]:
    """The addresses of an organization's stores in a country, of as many stores as a chain may have."""
    return await queries.find_addresses_in(tx, organization_id, country, limit=STORES_MAX)


async def name_stores(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    """What people call these stores: the name, or the code of one without."""
    return await queries.find_store_names(tx, organization_id, sorted(ids)) if ids else {}


async def list_by_name(tx: Tx, organization_id: UUID, page: PageRequest, *, word: str = "") -> PageRows[NamedStore]:
    """Those whose name, place or code has the word."""
    return await queries.list_stores_by_name(
        tx,
        organization_id,
        page,
        word=word.lower() or None,
        identifier=STORE.decode(word),
        rows_max=LOOKED_AT_MAX,
    )


async def count_stores(tx: Tx, organization_id: UUID, *, most: int) -> int:
    """How many there are, counted up to a bound."""
    return await queries.count_stores(tx, organization_id, most=most)
