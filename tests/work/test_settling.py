"""What came of a claim is written down even if the database is away when it is known."""

import asyncio
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from psycopg.errors import LockNotAvailable
from structlog.testing import capture_logs

from regulars.kit.clock import monotonic
from regulars.kit.ids import new_uuid
from regulars.work import claims
from regulars.work.claims import ClaimQueue
from regulars.work.queue import Due

pytestmark = pytest.mark.anyio


class Calls(ClaimQueue[UUID, str]):
    """One claim; settling it fails as often as it is told to."""

    name = "calls"
    due = Due(table="letters")

    def __init__(self, failures: list[Exception]):
        super().__init__()
        self.failures = failures
        self.settled: list[str] = []

    async def claim(self, tx, organization_id, *, limit, lowest, owner, until):
        return [new_uuid()]

    async def act(self, organization_id, claim):
        return "sent"

    async def complete(self, tx, organization_id, done):
        if self.failures:
            raise self.failures.pop()
        self.settled += [outcome for _, outcome in done]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(claims, "COMPLETE_RETRY_S", 0.01)


async def play(calls: Calls, database, organization_id) -> None:
    await calls.run_pass(database, organization_id)
    async with asyncio.timeout(30):
        await calls.finish()


async def test_a_lost_connection_is_no_reason_to_forget_what_is_known(database, organization_id):
    calls = Calls([psycopg.OperationalError("gone")] * 3)
    await play(calls, database, organization_id)
    assert calls.settled == ["sent"]


@pytest.mark.parametrize("left_s", [0.05, -1.0])
async def test_talking_ends_before_the_claim_does_also_when_the_commit_took_long(
    database, organization_id, monkeypatch, left_s
):
    class Slow(Calls):
        passed_s = 0.0

        async def claim(self, tx, organization_id, **about):
            self.passed_s = self.claim_for.total_seconds() - claims.COMPLETE_S - left_s
            return await super().claim(tx, organization_id, **about)

        async def act(self, organization_id, claim):
            await asyncio.Event().wait()

    calls = Slow([])
    calls.claim_for = timedelta(hours=1)
    monkeypatch.setattr(claims, "monotonic", lambda: monotonic() + calls.passed_s)
    with capture_logs() as lines:
        await play(calls, database, organization_id)
    assert calls.settled == []
    [line] = lines
    assert (line["event"], line["log_level"], line["error"]) == ("work.act_failed", "warning", "TimeoutError")


async def test_a_mistake_is_not_repeated_and_the_claim_lapses(database, organization_id):
    calls = Calls([RuntimeError("planted")])
    await play(calls, database, organization_id)
    assert calls.settled == []


async def test_it_is_given_up_when_the_claim_has_lapsed(database, organization_id, monkeypatch):
    # It is claimed, said and to be settled at once.
    moments = iter([0.0] * 3 + [1e9] * 100)
    monkeypatch.setattr(claims, "monotonic", lambda: next(moments))
    calls = Calls([psycopg.OperationalError("gone")] * 3)
    await play(calls, database, organization_id)
    assert len(calls.failures) == 2
    assert calls.settled == []


class Locked(Calls):
    """Several claims; the outcome of one of them waits for a lock that is never released."""

    outcomes = ("locked", "b", "c", "d")
    tries = 0

    async def claim(self, tx, organization_id, *, limit, lowest, owner, until):
        return self.outcomes

    async def act(self, organization_id, claim):
        return claim

    async def complete(self, tx, organization_id, done):
        self.tries += 1
        outcomes = [outcome for _, outcome in done]
        if "locked" in outcomes:
            raise LockNotAvailable
        self.settled += outcomes


async def test_outcomes_that_were_never_tried_alone_are_tried_when_the_time_is_up(
    database, organization_id, monkeypatch
):
    calls = Locked([])
    # The time is up when the last two parts are about to be written.
    monkeypatch.setattr(claims, "monotonic", lambda: 1e9 if calls.tries > 2 else 0.0)
    with capture_logs() as lines:
        await play(calls, database, organization_id)
    assert sorted(calls.settled) == ["b", "c", "d"]
    assert [line["event"] for line in lines][-1] == "work.settle_failed"


async def test_outcomes_that_came_while_others_were_tried_are_written(database, organization_id, monkeypatch):
    locked = asyncio.Event()

    class Late(Locked):
        outcomes = ("locked", "late")

        async def act(self, organization_id, claim):
            if claim == "late":
                await locked.wait()
            return claim

        async def complete(self, tx, organization_id, done):
            if self.tries == 1:
                locked.set()
                await asyncio.sleep(0)
            await super().complete(tx, organization_id, done)

    calls = Late([])
    monkeypatch.setattr(claims, "monotonic", lambda: 1e9 if calls.tries > 1 else 0.0)
    await play(calls, database, organization_id)
    assert calls.settled == ["late"]
