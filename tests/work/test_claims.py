"""A queue for network calls, as a room would write it: claims, slots, outcomes, and what follows a failed call."""

import asyncio
import time
from collections import Counter
from typing import NamedTuple
from uuid import UUID

from tests.support.waiting import until
from tests.work.test_loop import letters_url, post, rows, served, url

from regulars.kit.db import Database
from regulars.kit.ids import new_uuid
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Due

__all__ = ["letters_url", "url"]


class Call(NamedTuple):
    id: UUID
    word: str


class Calls(ClaimQueue[Call, bool]):
    name = "calls"
    due = Due(table="letters")
    poll_every_s = 0.2

    def __init__(self):
        super().__init__()
        self.made: list[str] = []
        self.at_once = self.most_at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def claim(self, tx, organization_id, *, limit, lowest, owner, until):
        rows = await tx.fetch(
            "SELECT id, word, owner FROM letters WHERE organization_id = %s AND due_at <= %s"
            " ORDER BY due_at, id LIMIT %s FOR UPDATE SKIP LOCKED",
            (organization_id, tx.now, limit),
        )
        for identifier, _, lapsed in rows:
            await tx.execute(
                "UPDATE letters SET owner = %s, due_at = %s, lapses = lapses + %s WHERE organization_id = %s AND id = %s",
                (owner, until, 0 if lapsed is None else 1, organization_id, identifier),
            )
        return [Call(identifier, word) for identifier, word, _ in rows]

    async def act(self, organization_id, claim):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.gate.wait()
            if claim.word == "poison":
                raise RuntimeError("planted")
            self.made.append(claim.word)
            return True
        finally:
            self.at_once -= 1

    async def complete(self, tx, organization_id, done):
        for claim, _ in done:
            await tx.execute(
                "UPDATE letters SET due_at = NULL, owner = NULL WHERE organization_id = %s AND id = %s AND owner = %s",
                (organization_id, claim.id, self.owner),
            )


def test_claims_are_committed_before_anything_is_said_and_settled_afterwards(url):
    organization_id = new_uuid()
    post(url, organization_id, "a", "b")

    async def scenario():
        calls = Calls()
        calls.gate.clear()
        async with served(url, calls):
            await until(lambda: calls.at_once == 2)
            claimed = rows(url, "SELECT owner, due_at > now() + interval '20 s' FROM letters")
            calls.gate.set()
            await until(lambda: rows(url, "SELECT count(*) FROM letters WHERE due_at IS NULL") == [(2,)])
        return calls, claimed

    calls, claimed = asyncio.run(scenario())
    assert claimed == [(calls.owner, True)] * 2
    assert sorted(calls.made) == ["a", "b"]


def test_no_more_than_the_limit_is_claimed_at_once_and_the_rest_follows(url):
    one, other = new_uuid(), new_uuid()
    post(url, one, *["x"] * 9)
    post(url, other, *["y"] * 2)

    async def scenario():
        calls = Calls()
        calls.at_once_max = 4
        calls.poll_every_s = 3600.0
        async with served(url, calls):
            await until(lambda: len(calls.made) == 11)
        return calls

    assert asyncio.run(scenario()).most_at_once <= 4


def test_organizations_that_wait_for_slots_get_equal_shares_in_turn(url):
    """The first has all slots, and its calls end together: then the others have their turns."""

    class SlowCalls(Calls):
        async def act(self, organization_id, claim):
            await asyncio.sleep(0.02)
            return await super().act(organization_id, claim)

    many = [new_uuid() for _ in range(6)]
    for organization_id in many:
        post(url, organization_id, *[str(organization_id)] * 40)

    async def scenario():
        calls = SlowCalls()
        calls.at_once_max, calls.batch_rows, calls.turn_slots, calls.poll_every_s = 10, 10, 2, 3600.0
        async with served(url, calls):
            await until(lambda: len(calls.made) >= 120)
            return Counter(calls.made[30:])

    shares = asyncio.run(scenario())
    assert len(shares) == 6
    assert max(shares.values()) <= 1.6 * min(shares.values()), sorted(shares.values())


def test_thousands_of_organizations_that_wait_for_slots_do_not_block_the_loop():
    class Woken:
        def __init__(self):
            self.organizations: list[UUID] = []

        def notify_committed(self, queues):
            self.organizations += [organization_id for _, organization_id in queues]

    calls, database, many = Calls(), Woken(), [new_uuid() for _ in range(5_000)]
    calls.at_once_max, calls.turn_slots = 16, 4
    turn = calls._take_slots(new_uuid())
    assert turn is not None
    for organization_id in many:
        assert calls._take_slots(organization_id) is None
    began = time.process_time()
    for _ in range(20):
        calls._wake_waiting(database)
    assert database.organizations == []
    calls._used_slots[turn.lowest] -= turn.slots
    calls._wake_waiting(database)
    assert time.process_time() - began < 1
    assert database.organizations == many[:4]


def test_a_slow_call_of_one_organization_leaves_the_other_slot_to_the_next(url):
    slow, quick = new_uuid(), new_uuid()
    post(url, slow, "slow")

    class SlowFirst(Calls):
        async def act(self, organization_id, claim):
            if organization_id == quick:
                self.made.append(claim.word)
                return True
            return await super().act(organization_id, claim)

    async def scenario():
        calls = SlowFirst()
        calls.at_once_max = calls.batch_rows = 2
        calls.gate.clear()
        async with served(url, calls) as loop:
            await until(lambda: calls.at_once == 1)
            post(url, quick, "quick")
            loop.wake("calls", quick)
            await until(lambda: calls.made == ["quick"])
            calls.gate.set()

    asyncio.run(scenario())


def test_a_claim_whose_owner_died_returns_at_its_deadline_and_says_so(url):
    organization_id = new_uuid()
    post(url, organization_id, "lost")

    async def scenario():
        dead = Calls()
        dead.gate.clear()
        database = Database(url, pool_max=2)
        await database.open()
        await dead.run_pass(database, organization_id)
        for task in dead._acting:
            task.cancel()
        calls = Calls()
        async with served(url, calls):
            post(url, organization_id, "later")
            await until(lambda: calls.made == ["later"])
            rows(url, "UPDATE letters SET due_at = now() WHERE word = 'lost' RETURNING 1")
            await until(lambda: calls.made == ["later", "lost"])
            await until(lambda: rows(url, "SELECT lapses, due_at FROM letters WHERE word = 'lost'") == [(1, None)])
        await database.close()

    asyncio.run(scenario())


def test_an_act_that_fails_leaves_its_claim_to_lapse_and_its_neighbours_settle(url):
    organization_id = new_uuid()
    post(url, organization_id, "poison", "fine")

    async def scenario():
        calls = Calls()
        async with served(url, calls):
            await until(lambda: rows(url, "SELECT count(*) FROM letters WHERE due_at IS NULL") == [(1,)])

    asyncio.run(scenario())
    assert rows(url, "SELECT word FROM letters WHERE owner IS NOT NULL") == [("poison",)]


def test_an_organization_that_waits_for_a_slot_gets_it_also_when_the_last_act_failed(url):
    first, second = new_uuid(), new_uuid()
    post(url, first, "poison")

    async def scenario():
        calls = Calls()
        calls.at_once_max = 1
        # No look finds them in the end.
        calls.poll_every_s = 3600
        calls.gate.clear()
        async with served(url, calls) as loop:
            await until(lambda: calls.at_once == 1)
            post(url, second, "b")
            loop.wake("calls", second)
            await until(lambda: second in calls._waiting_for_slots)
            calls.gate.set()
            await until(lambda: calls.made == ["b"])

    asyncio.run(scenario())


def test_stopping_waits_for_what_was_begun(url):
    organization_id = new_uuid()
    post(url, organization_id, "last words")

    async def scenario():
        calls = Calls()
        calls.gate.clear()
        async with served(url, calls):
            await until(lambda: calls.at_once == 1)
            asyncio.get_running_loop().call_later(0.3, calls.gate.set)
        return calls.made

    assert asyncio.run(scenario()) == ["last words"]
    assert rows(url, "SELECT due_at FROM letters") == [(None,)]
