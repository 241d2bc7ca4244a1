"""The audit log is a chain per organization: it shows what was changed, and content can go without breaking it."""

import asyncio
from datetime import timedelta

import pytest

from regulars.accounts.audit.chain import verify_log
from regulars.accounts.audit.log import Actor, record, sweep_addresses
from regulars.kit.ids import new_uuid

pytestmark = pytest.mark.anyio
ME = Actor(None, "me@shop.example", "203.0.113.9")


async def write(database, organization_id, rows=3):
    for number in range(rows):
        async with database.transaction() as tx:
            await record(tx, organization_id, ME, "key.create", f"key_{number}", after={"é": number, "a": None})


async def test_an_untouched_log_verifies_also_when_many_write_at_once(database):
    one, other = new_uuid(), new_uuid()
    await asyncio.gather(*(write(database, each, rows=4) for each in (one, other, one, other)))
    proof = await verify_log(database, one)
    assert (proof.fault, proof.rows, proof.rows_outside) == (None, 8, 0)
    assert proof.head != (await verify_log(database, other)).head
    assert (await verify_log(database, new_uuid())).fault is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE audit_log SET act = 'key.revoke' WHERE sequence = 2", "row 2: its hash"),
        ("UPDATE audit_log SET at = now() - interval '1 hour' WHERE sequence = 2", "row 2: its hash"),
        ("UPDATE audit_log SET actor = 'someone@else.example' WHERE sequence = 2", "row 2: its actor"),
        ("UPDATE audit_log SET address = '192.0.2.1' WHERE sequence = 2", "row 2: its address"),
        ("UPDATE audit_log SET address = '192.0.2.1', address_salt = NULL WHERE sequence = 2", "row 2: its address"),
        ("UPDATE audit_log SET subject = 'key_9' WHERE sequence = 2", "row 2: its subject"),
        ("UPDATE audit_log SET after = '{}' WHERE sequence = 2", "row 2: its subject"),
        ("DELETE FROM audit_log WHERE sequence = 2", "row 3: a row before this one is missing"),
        ("DELETE FROM audit_log WHERE sequence = 3", "rows are missing after row 2"),
        ("UPDATE audit_heads SET sequence = 2", "the last row is not the one that the chain ends with"),
    ],
)
async def test_what_is_changed_by_hand_is_found(database, change, fault):
    organization_id = new_uuid()
    await write(database, organization_id)
    async with database.transaction() as tx:
        await tx.execute(change)
    assert fault in str((await verify_log(database, organization_id)).fault)


async def test_addresses_go_after_their_time_and_the_chain_still_holds(database):
    organization_id = new_uuid()
    await write(database, organization_id)
    async with database.transaction() as tx:
        # A row of the release before, which knew no chain.
        await tx.execute(
            "INSERT INTO audit_log (organization_id, id, at, actor, address, act, subject)"
            " VALUES (%s, %s, %s, 'x', '192.0.2.7', 'key.create', 'y')",
            (organization_id, new_uuid(), tx.now - timedelta(days=400)),
        )
    assert await sweep_addresses(database, organization_id, retention=timedelta(days=396)) == 1
    assert (await verify_log(database, organization_id)).addresses_deleted == 0
    assert await sweep_addresses(database, organization_id, retention=timedelta(0)) == 3
    proof = await verify_log(database, organization_id)
    assert (proof.fault, proof.rows, proof.rows_outside, proof.addresses_deleted) == (None, 3, 1, 3)
    async with database.reading() as tx:
        assert await tx.fetch("SELECT 1 FROM audit_log WHERE address IS NOT NULL OR address_salt IS NOT NULL") == []
        assert await tx.fetch("SELECT DISTINCT actor FROM audit_log WHERE sequence > 0") == [("me@shop.example",)]
