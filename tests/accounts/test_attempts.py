"""Which attempts count as failures, and what a failure leaves in the database."""

from types import SimpleNamespace

import pytest
from tests.support.quick_passwords import QUICK

from regulars.accounts import passwords as hashing
from regulars.accounts.passwords import Passwords
from regulars.accounts.sign_in import check_password
from regulars.accounts.sign_in_attempts import PAIR_FAILURES_MAX
from regulars.web.errors import TooMany

pytestmark = pytest.mark.anyio
ADDRESS = "203.0.113.9"


async def fail(database, passwords, email="nobody@shop.example"):
    visit = SimpleNamespace(database=database, client_address=ADDRESS)
    return await check_password(visit, passwords, email=email, password="a guess")


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch):
    monkeypatch.setattr(hashing, "_HASHER", QUICK)


async def test_in_a_flood_of_sign_ins_one_waits_for_a_bounded_time_and_the_attempt_is_given_back(database, monkeypatch):
    monkeypatch.setattr(hashing, "QUEUE_WAIT_S", 0.01)
    busy = Passwords()
    async with busy._slot(), busy._slot():
        for _ in range(PAIR_FAILURES_MAX + 1):
            with pytest.raises(TooMany, match="Too many people are signing in"):
                await fail(database, busy)
    # Later there is room again.
    assert (await fail(database, busy)).attempt.left == PAIR_FAILURES_MAX - 1


async def test_an_unknown_address_is_counted_like_a_known_one_and_leaves_no_row_in_an_audit_log(database):
    await fail(database, Passwords(), "nobody@shop.example")
    async with database.transaction() as tx:
        failures = await tx.fetch("SELECT count FROM sign_in_failures WHERE subject = 'told nobody@shop.example'")
        assert failures == [(1,)]
        assert await tx.fetch("SELECT 1 FROM audit_log UNION ALL SELECT 1 FROM audit_heads") == []
