"""The worker as a process of its own, killed at the two moments that matter."""

import asyncio
import os
import signal
import sys

import pytest
from tests.support.project import ROOT
from tests.support.waiting import until, until_locked

pytestmark = pytest.mark.anyio

KEY = "a key of the tests that is long enough"


async def start_worker(shop) -> asyncio.subprocess.Process:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("REGULARS_")}
    environment = {
        **inherited,
        "PYTHONPATH": str(ROOT / "src"),
        "DATABASE_URL": shop.database.url,
        "REGULARS_SECRET_KEY": KEY,
        "REGULARS_WEBHOOK_ALLOW": "127.0.0.0/8",
        "REGULARS_LOG_LEVEL": "error",
    }
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "regulars.cli", "worker", env=environment)


async def kill(process) -> None:
    process.send_signal(signal.SIGKILL)
    await process.wait()


async def is_delivered(shop) -> bool:
    return [one.state for one in await shop.deliveries()] == ["delivered"]


@pytest.mark.timeout(180)
async def test_killed_after_the_claim_and_after_the_answer_nothing_is_lost_and_the_id_stays(shop, receiver):
    await shop.create(receiver.url)
    received = asyncio.Event()

    async def hang(reader, writer):
        received.set()
        await asyncio.sleep(3600)

    receiver.misbehave = hang
    await shop.upsert("a")
    first = await start_worker(shop)
    async with asyncio.timeout(60):
        await received.wait()
    # It has claimed the delivery and is waiting for the answer.
    await kill(first)
    await shop.later(seconds=31)
    (claimed,) = await shop.deliveries()
    assert (claimed.state, claimed.attempts) == ("pending", 0)

    async def answer_and_hold(reader, writer):
        async with shop.database.transaction() as tx:
            # The outcome cannot be noted while this holds the endpoint: the answer is given, the note is not.
            await tx.fetch("SELECT 1 FROM webhook_endpoints FOR UPDATE")
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await writer.drain()
            await until_locked(shop.database)
            await kill(second)

    receiver.misbehave = answer_and_hold
    second = await start_worker(shop)
    async with asyncio.timeout(60):
        await second.wait()
    (unnoted,) = await shop.deliveries()
    assert (unnoted.state, unnoted.attempts, unnoted.lapses) == ("pending", 0, 1)

    receiver.misbehave = None
    await shop.later(seconds=31)
    third = await start_worker(shop)
    try:
        await until(lambda: is_delivered(shop))
    finally:
        third.terminate()
        await third.wait()
    assert len(receiver.received) == 3
    assert len({one.id for one in receiver.received}) == 1
    (delivery,) = await shop.deliveries()
    assert (delivery.attempts, delivery.lapses) == (1, 2)
