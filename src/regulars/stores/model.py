"""What a store is, and how an upsert changes it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Stored as JSON with its fields in this order, which is that of the specification."""

    address_line1: str
    postal_code: str
    locality: str
    country_code: str
    address_line2: str | None = None
    administrative_area1: str | None = None
    administrative_area2: str | None = None


class Store(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    external_id: str
    name: str | None
    address: Address | None
    created_at: datetime
    updated_at: datetime


class NamedStore(NamedTuple):
    """A store and its position in a list; by name, that is the database's own spelling of it."""

    store: Store
    position: tuple[str, ...]


class StoreRef(msgspec.Struct, frozen=True):
    """A store as other rooms refer to it."""

    id: UUID
    external_id: str


class StoreUpsert(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller says about a store: an unset field is left alone, None clears it, an address replaces the whole."""

    external_id: str
    name: str | UnsetType | None = UNSET
    address: Address | UnsetType | None = UNSET
    # The unknown members of the body it was read from.
    ignored: tuple[str, ...] = ()


def apply(upsert: StoreUpsert, store: Store, *, now: datetime) -> Store:
    """The store after the upsert; the very same object if nothing changes, so that `updated_at` does not move."""
    name = store.name if upsert.name is UNSET else upsert.name
    address = store.address if upsert.address is UNSET else upsert.address
    if name == store.name and address == store.address:
        return store
    # A transaction that began earlier may come to write later: the time of a change never runs backwards.
    return msgspec.structs.replace(store, name=name, address=address, updated_at=max(now, store.updated_at))


def begin(upsert: StoreUpsert, *, identifier: UUID, now: datetime) -> Store:
    return Store(
        id=identifier,
        external_id=upsert.external_id,
        name=None if upsert.name is UNSET else upsert.name,
        address=None if upsert.address is UNSET else upsert.address,
        created_at=now,
        updated_at=now,
    )
