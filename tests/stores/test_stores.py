"""Upserting, listing and reading stores."""

import asyncio
from uuid import UUID, uuid4

import pytest
from tests.support.waiting import until_locked

from regulars.kit.db import Database
from regulars.kit.ids import ByExternalId, ById, new_uuid
from regulars.stores.find import find_store, find_stores
from regulars.stores.model import COUNTRY_CODES, Address, StoreRef, StoreUpsert
from regulars.stores.upsert import UpsertedStore, upsert_stores

pytestmark = pytest.mark.anyio

ADDRESS = {"address_line1": "12 rue de la Paix", "postal_code": "75002", "locality": "Paris", "country_code": "FR"}


async def upsert(database: Database, organization_id: UUID, *upserts: StoreUpsert) -> list[UpsertedStore]:
    async with database.transaction() as tx:
        return await upsert_stores(tx, organization_id, upserts)


def test_the_list_of_countries_is_whole():
    assert len(COUNTRY_CODES) == 249
    assert {"FR", "GB", "US", "CH", "TW", "PS", "AX", "SS"} <= COUNTRY_CODES


async def test_several_upserts_of_one_store_in_a_batch_each_see_their_own_state(database, organization_id):
    address = Address(**ADDRESS)
    outcomes = await upsert(
        database,
        organization_id,
        StoreUpsert(external_id="s", name="Paris"),
        StoreUpsert(external_id="t"),
        StoreUpsert(external_id="s", address=address),
        StoreUpsert(external_id="s", name="Paris"),
    )
    assert [outcome.change for outcome in outcomes] == ["created", "created", "updated", "unchanged"]
    assert [outcome.store.address for outcome in outcomes] == [None, None, address, address]
    async with database.transaction() as tx:
        assert await find_store(tx, organization_id, ByExternalId("s")) == outcomes[-1].store


async def test_an_upsert_that_loses_the_race_to_create_updates_the_store_of_the_winner(database, organization_id):
    async with database.transaction() as tx:
        await upsert_stores(tx, organization_id, [StoreUpsert(external_id="s", name="Paris")])
        late = asyncio.create_task(
            upsert(database, organization_id, StoreUpsert(external_id="s", address=Address(**ADDRESS)))
        )
        await until_locked(database)
        assert not late.done()
    (outcome,) = await late
    assert (outcome.change, outcome.store.name, outcome.store.address) == ("updated", "Paris", Address(**ADDRESS))


async def test_it_finds_stores_by_either_name_and_leaves_out_the_unknown(database, organization_id):
    (made,) = await upsert(database, organization_id, StoreUpsert(external_id="s"))
    ref = StoreRef(made.store.id, "s")
    references = [ById(ref.id), ByExternalId("s"), ById(new_uuid()), ById(None), ByExternalId("z"), ByExternalId("\0")]
    async with database.transaction() as tx:
        assert await find_stores(tx, organization_id, references) == {ById(ref.id): ref, ByExternalId("s"): ref}
        assert await find_stores(tx, uuid4(), references) == {}
