"""API keys: what they look like, who they let in, and how soon a revoked one stops."""

import asyncio
import hashlib
from contextlib import AsyncExitStack

import pytest
from tests.support.waiting import until

from regulars.kit.db import KEY_READS_MAX
from regulars.kit.ids import new_uuid
from regulars.organizations import authenticate, manage
from regulars.organizations.authenticate import CACHE_S, REFRESH_AFTER_S, Authenticator
from regulars.organizations.model import checksum, hash_key, is_well_formed, new_key
from regulars.organizations.settings import NameTaken

pytestmark = pytest.mark.anyio


class Clock:
    now = 5000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(authenticate, "monotonic", clock)
    return clock


@pytest.fixture
async def issued(database):
    """An organization's name, its id, a key of it and the key's secret."""
    async with database.connection() as connection:
        organization = await manage.create_organization(connection, f"Shop {new_uuid()}")
        key, secret = await manage.create_key(connection, organization.id, "till")
    return organization, key, secret


def test_a_new_key_is_well_formed_and_like_no_other():
    made = {new_key() for _ in range(200)}
    assert len(made) == 200
    for key in made:
        assert key.startswith("rgl_")
        assert len(key) == 40
        assert key.isascii()
        assert is_well_formed(key)


def test_a_key_with_any_character_changed_is_not_well_formed():
    key = new_key()
    for place in range(len(key)):
        changed = key[:place] + ("x" if key[place] != "x" else "y") + key[place + 1 :]
        assert not is_well_formed(changed)
    for wrong in (
        "",
        " ",
        key + " ",
        " " + key,
        key[:-1],
        key + "0",
        key.upper(),
        "é" * 40,
        "rgl_" + "é" * 30 + checksum("é" * 30),
    ):
        assert not is_well_formed(wrong)


async def test_a_key_is_stored_as_its_hash_only_and_lets_its_organization_in(database, issued):
    organization, key, secret = issued
    caller = await Authenticator(database).authenticate(secret.encode())
    assert (caller.organization_id, caller.api_key_id) == (organization.id, key.id)
    assert len(caller.secret) == 32
    # A log line or a traceback may show the caller.
    assert repr(caller.secret) not in repr(caller)
    assert hash_key(secret) == hashlib.sha256(secret.encode()).digest()
    async with database.reading() as tx:
        [(row,)] = await tx.fetch("SELECT k::text FROM api_keys k")
    assert secret not in row
    assert key.hint == secret[-4:]


async def test_a_key_is_confirmed_while_every_look_up_hangs(database, issued):
    async with AsyncExitStack() as hanging:
        for _ in range(KEY_READS_MAX):
            await hanging.enter_async_context(database.reading_by_key())
        assert await Authenticator(database).authenticate(issued[2].encode()) is not None


async def test_unknown_and_malformed_keys_are_refused_and_the_malformed_cost_no_query(database, issued):
    authenticator = Authenticator(database)
    assert await authenticator.authenticate(new_key().encode()) is None
    await database.close()
    for malformed in (b"", b"rgl_", b"\xff" * 40, issued[2].encode() + b" ", issued[2][:-1].encode() + b"_"):
        assert await authenticator.authenticate(malformed) is None


async def test_a_revoked_key_is_refused_within_a_second_and_a_live_one_stays(database, issued, clock):
    organization, key, secret = issued
    authenticator = Authenticator(database)
    assert await authenticator.authenticate(secret.encode()) is not None
    async with database.connection() as connection:
        second, second_secret = await manage.create_key(connection, organization.id, "second till")
        assert await manage.revoke_key(connection, key.id)
    clock.now += CACHE_S
    assert authenticator.cached(secret.encode()) is not None
    clock.now += 0.001
    assert await authenticator.authenticate(secret.encode()) is None
    assert authenticator.cached(secret.encode()) is None
    caller = await authenticator.authenticate(second_secret.encode())
    assert caller.api_key_id == second.id


async def test_the_second_counts_from_before_the_question(database, issued, clock, monkeypatch):
    """A slow answer of the database must not keep a key alive for longer."""
    find = Authenticator._find_callers

    async def slow(*arguments):
        found = await find(*arguments)
        clock.now += 10
        return found

    monkeypatch.setattr(Authenticator, "_find_callers", slow)
    authenticator = Authenticator(database)
    assert await authenticator.authenticate(issued[2].encode()) is not None
    assert authenticator.cached(issued[2].encode()) is None


async def test_busy_keys_are_confirmed_again_together_and_idle_ones_are_left_alone(
    database, issued, clock, monkeypatch
):
    organization, _, _ = issued
    authenticator = Authenticator(database)
    async with database.connection() as connection:
        keys = [(await manage.create_key(connection, organization.id, "till"))[1].encode() for _ in range(4)]
    for key in keys:
        await authenticator.authenticate(key)
    find = Authenticator._find_callers
    asked: list[int] = []

    async def counting(authenticator, tx, hashes):
        asked.append(len(hashes))
        return await find(authenticator, tx, hashes)

    monkeypatch.setattr(Authenticator, "_find_callers", counting)
    clock.now += REFRESH_AFTER_S + 0.1
    assert all(authenticator.cached(key) is not None for key in keys[:3])
    await authenticator._refreshing
    assert asked == [3]
    clock.now += REFRESH_AFTER_S - 0.05
    assert [authenticator.cached(key) is not None for key in keys] == [True, True, True, False]


async def last_used(database, key):
    async with database.reading() as tx:
        return await tx.fetch_value("SELECT last_used_at FROM api_keys WHERE id = %s", (key.id,))


async def test_use_is_noted_at_most_once_a_minute(database, issued):
    _, key, secret = issued
    authenticator = Authenticator(database)
    await authenticator.record_use()
    assert await last_used(database, key) is None
    await authenticator.authenticate(secret.encode())
    await authenticator.record_use()
    first = await last_used(database, key)
    assert first is not None
    again = Authenticator(database)
    await again.authenticate(secret.encode())
    await again.record_use()
    assert await last_used(database, key) == first
    async with database.reading() as tx:
        await tx.execute("UPDATE api_keys SET last_used_at = now() - interval '61 seconds'")
    await again.authenticate(new_key().encode())
    again._used.add(key.id)
    await again.record_use()
    assert await last_used(database, key) > first


async def test_use_is_noted_also_after_a_round_that_failed(database, issued, monkeypatch):
    monkeypatch.setattr(authenticate, "RECORD_USE_EVERY_S", 0.02)
    _, key, secret = issued
    authenticator = Authenticator(database)
    await authenticator.authenticate(secret.encode())
    async with database.reading() as tx:
        await tx.execute("ALTER TABLE api_keys RENAME COLUMN last_used_at TO away")
    rounds = []
    record_use = authenticator.record_use

    async def count_round():
        rounds.append("begun")
        await record_use()

    monkeypatch.setattr(authenticator, "record_use", count_round)
    recording_use = asyncio.create_task(authenticator.record_use_forever())
    # The second begins when the first has failed.
    await until(lambda: len(rounds) > 1)
    async with database.reading() as tx:
        await tx.execute("ALTER TABLE api_keys RENAME COLUMN away TO last_used_at")

    await until(lambda: last_used(database, key))
    recording_use.cancel()


async def test_the_cache_is_bounded(database, issued, monkeypatch):
    monkeypatch.setattr(authenticate, "CACHED_KEYS_MAX", 2)
    organization, _, _ = issued
    authenticator = Authenticator(database)
    async with database.connection() as connection:
        secrets = [(await manage.create_key(connection, organization.id, "till"))[1] for _ in range(5)]
    for secret in secrets:
        assert await authenticator.authenticate(secret.encode()) is not None
        assert len(authenticator._cache) <= 2


async def test_of_many_who_create_an_organization_at_once_one_gets_it(database):
    async def create():
        async with database.connection() as connection:
            return await manage.create_organization(connection, "Twice")

    answers = await asyncio.gather(*(create() for _ in range(8)), return_exceptions=True)
    made = [answer for answer in answers if not isinstance(answer, NameTaken)]
    assert len(made) == 1
    async with database.connection() as connection:
        assert await manage.find_organization(connection, "Twice") == made[0]
        assert [organization.name for organization in await manage.list_organizations(connection)] == ["Twice"]
        assert not await manage.revoke_key(connection, new_uuid())
        assert await manage.list_keys(connection, made[0].id) == []
