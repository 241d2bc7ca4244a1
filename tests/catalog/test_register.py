"""Registering keys on first use, and changing their types."""

import asyncio
from uuid import uuid4

import pytest
from tests.support.waiting import until_locked

from regulars.catalog.entries import PRODUCT_KEY_BYTES_MAX, register_attributes, register_product_keys, retype
from regulars.catalog.model import AttributeType, Catalog
from regulars.kit.errors import ValidationError
from regulars.profiles.model import ProfileUpsert
from regulars.profiles.write import upsert_profiles

pytestmark = pytest.mark.anyio


async def attributes(database, organization_id):
    async with database.transaction() as tx:
        rows = await tx.fetch(
            "SELECT key, type, looks_like_code FROM profile_attributes WHERE organization_id = %s ORDER BY key",
            (organization_id,),
        )
    return {key: (declared, is_code) for key, declared, is_code in rows}


async def product_keys(database, organization_id):
    async with database.transaction() as tx:
        return dict(
            await tx.fetch("SELECT key, type FROM product_properties WHERE organization_id = %s", (organization_id,))
        )


async def test_a_key_keeps_the_type_of_its_first_value(database, organization_id):
    async with database.transaction() as tx:
        await register_attributes(tx, organization_id, {"points": "12", "zip": "01234", "vip": "true"})
        await register_attributes(tx, organization_id, {"points": "many", "since": "2024-02-29", "note": ""})
        await register_attributes(tx, organization_id, {})
    assert await attributes(database, organization_id) == {
        "points": ("number", False),
        "zip": ("number", True),
        "vip": ("boolean", False),
        "since": ("date", False),
        "note": ("text", False),
    }
    assert await attributes(database, uuid4()) == {}


async def test_keys_that_two_transactions_meet_at_once_are_registered_once(database, organization_id):
    keys = [f"k{number:02}" for number in range(40)]

    async def register(order: list[str]) -> None:
        async with database.transaction() as tx:
            await register_attributes(tx, organization_id, dict.fromkeys(order, "1"))
            await register_product_keys(tx, organization_id, order)

    await asyncio.gather(*(register(keys if number % 2 else keys[::-1]) for number in range(8)))
    assert sorted(await attributes(database, organization_id)) == keys
    assert sorted(await product_keys(database, organization_id)) == keys


async def test_the_first_to_commit_decides_the_type(database, organization_id):
    async def register_late() -> None:
        async with database.transaction() as tx:
            await register_attributes(tx, organization_id, {"points": "many"})

    async with database.transaction() as tx:
        await register_attributes(tx, organization_id, {"points": "12"})
        late = asyncio.create_task(register_late())
        await until_locked(database)
        assert not late.done()
    await late
    assert await attributes(database, organization_id) == {"points": ("number", False)}


async def test_product_keys_start_as_text_and_the_longest_are_left_out(database, organization_id):
    indexable = "".join(chr(0x4E00 + number) for number in range(PRODUCT_KEY_BYTES_MAX // 3))
    too_long = "".join(chr(0x4E00 + number) for number in range(1300))
    async with database.transaction() as tx:
        await register_product_keys(tx, organization_id, ["colour", "size", "colour", indexable, too_long])
        await register_product_keys(tx, organization_id, [])
    assert await product_keys(database, organization_id) == {"colour": "text", "size": "text", indexable: "text"}


async def test_a_new_type_leaves_every_value_as_it_is(database, organization_id):
    upsert = ProfileUpsert(external_id="a", attributes={"tier": "gold"})
    async with database.transaction() as tx:
        await upsert_profiles(tx, organization_id, [upsert])
        entry = await retype(
            tx,
            organization_id,
            Catalog.ATTRIBUTES,
            "tier",
            declared=AttributeType.ENUM,
            allowed_values=["silver", "bronze", "silver"],
        )
        assert entry is not None
        assert (entry.type, entry.allowed_values) == (AttributeType.ENUM, ("silver", "bronze"))
        rows = await tx.fetch("SELECT attributes FROM profiles WHERE organization_id = %s", (organization_id,))
        assert rows == [({"tier": "gold"},)]
        # A value outside the closed list is still taken.
        (outcome,) = await upsert_profiles(
            tx, organization_id, [ProfileUpsert(external_id="a", attributes={"tier": "platinum"})]
        )
        assert outcome.profile.attributes == {"tier": "platinum"}
        back = await retype(tx, organization_id, Catalog.ATTRIBUTES, "tier", declared=AttributeType.TEXT)
        assert back is not None
        assert (back.type, back.allowed_values) == (AttributeType.TEXT, ())


async def test_a_registered_key_keeps_the_type_a_person_gave_it(database, organization_id):
    async with database.transaction() as tx:
        await register_product_keys(tx, organization_id, ["price"])
        entry = await retype(tx, organization_id, Catalog.PRODUCTS, "price", declared=AttributeType.CURRENCY)
        assert entry is not None
        await register_product_keys(tx, organization_id, ["price"])
    assert await product_keys(database, organization_id) == {"price": "currency"}


async def test_an_unused_key_has_no_type_to_change(database, organization_id):
    async with database.transaction() as tx:
        await register_attributes(tx, uuid4(), {"tier": "gold"})
        assert await retype(tx, organization_id, Catalog.ATTRIBUTES, "tier", declared=AttributeType.TEXT) is None
        assert await retype(tx, organization_id, Catalog.PRODUCTS, "tier", declared=AttributeType.TEXT) is None


async def test_an_enum_without_values_is_refused(database, organization_id):
    async with database.transaction() as tx:
        with pytest.raises(ValidationError):
            await retype(tx, organization_id, Catalog.ATTRIBUTES, "tier", declared=AttributeType.ENUM)
