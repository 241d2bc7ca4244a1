"""Everything that is kept of one person, as one JSON document: what a customer may ask for."""

from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import UUID

import msgspec

from regulars.consent.browse.certificate import entry_as_json
from regulars.consent.find import list_history, list_subscriptions
from regulars.consent.subscription import show_subscription
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database
from regulars.kit.ids import PROFILE
from regulars.profiles.model import Profile
from regulars.sales.encode import encode_sale
from regulars.sales.listing import list_sales

NUMBERS_MAX: Final = 200
PAGE_ENTRIES: Final = 1_000
PAGE_SALES: Final = "200"


async def export_person(
    database: Database, organization_id: UUID, profile: Profile, *, secret: bytes
) -> AsyncIterator[bytes]:
    """In pieces: a person of any number of tickets takes the memory of one page of them."""
    async with database.reading() as tx:
        now = tx.now
    yield b'{"exported_at":' + msgspec.json.encode(format_timestamp(now))
    yield b',"profile":' + msgspec.json.encode(_profile(profile))
    yield b',"consents":['
    async for piece in _consents(database, organization_id, profile.id, secret=secret):
        yield piece
    yield b'],"sales_events":['
    async for piece in _sales(database, organization_id, profile.id, secret=secret):
        yield piece
    yield b"]}\n"


def _profile(profile: Profile) -> dict[str, Any]:
    return {
        "id": PROFILE.encode(profile.id),
        "external_id": profile.external_id,
        "phone_number": profile.phone_number,
        "first_name": profile.first_name,
        "last_name": profile.last_name,
        "attributes": profile.attributes,
        "created_at": format_timestamp(profile.created_at),
        "updated_at": format_timestamp(profile.updated_at),
    }


async def _consents(
    database: Database, organization_id: UUID, profile_id: UUID, *, secret: bytes
) -> AsyncIterator[bytes]:
    async with database.reading() as tx:
        found = await list_subscriptions(tx, organization_id, secret=secret, profile_id=profile_id, limit=NUMBERS_MAX)
    for place, subscription in enumerate(found):
        yield (b"," if place else b"") + b'{"subscription":' + msgspec.json.encode(show_subscription(subscription))
        yield b',"history":['
        after = 0
        while True:
            async with database.reading() as tx:
                page = await list_history(tx, organization_id, subscription.id, after=after, limit=PAGE_ENTRIES)
            if page:
                entries = b",".join(msgspec.json.encode(entry_as_json(entry)) for entry in page)
                yield (b"," if after else b"") + entries
                after = page[-1].sequence
            if len(page) < PAGE_ENTRIES:
                break
        yield b"]}"


async def _sales(database: Database, organization_id: UUID, profile_id: UUID, *, secret: bytes) -> AsyncIterator[bytes]:
    query = {"profile_id": PROFILE.encode(profile_id), "limit": PAGE_SALES}
    is_first = True
    while True:
        async with database.reading() as tx:
            page, cursor = await list_sales(tx, organization_id, query, secret=secret)
        if page:
            yield (b"" if is_first else b",") + b",".join(encode_sale(sale) for sale in page)
            is_first = False
        if cursor is None:
            break
        query = {**query, "cursor": cursor}
