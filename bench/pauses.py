"""Measures a pause: how long the click takes beside what waits, how fast other texts leave, and what polls cost.

Run it alone: `python bench/pauses.py [--runs 1000000] [--texts 100000]`, with `src` in `PYTHONPATH`.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg

from database import Cluster, make_templates, running_cluster
from regulars.journeys import manage
from regulars.journeys.definition import read_definition
from regulars.journeys.runs.lifecycle import release_runs
from regulars.journeys.runs.queue import RunQueue
from regulars.kit.db import Database, Tx
from regulars.kit.ids import new_uuid
from regulars.links.origin_kind import OriginKind
from regulars.texts.model import EXPIRES_AFTER
from regulars.texts.providers.base import Providers
from regulars.texts.request import TextOrder, request_texts
from regulars.texts.send import TextQueue
from regulars.texts.settings.store import load_texting
from regulars.texts.stops import ResumeQueue
from regulars.work.due import find_due_organizations
from regulars.work.loop import Loop
from regulars.work.queue import Queue

CLICKS = 5
POLLS = 2_000
CLICK_BAR_S = 0.2
LEAVES_BAR_S = 2.0
NUMBER = "+33600000001"
JOURNEY = {"trigger": "purchase", "steps": [{"do": "wait", "days": 2}, {"do": "send_text", "text": "Merci"}]}

# Half of the runs are due, and the others wait for a time to come.
_RUNS = """
INSERT INTO journey_runs
    (organization_id, id, journey_id, version, fact_kind, fact_id, profile_id, state, step, waits_for, waiting_since,
     due_at, entered_at)
SELECT %(organization_id)s, gen_random_uuid(), %(journey_id)s, 1, 'sale', 'pause-' || n, gen_random_uuid(), 'active',
    '1', 'time', now() - interval '2 days',
    now() + CASE WHEN n <= %(due)s THEN - n * interval '1 ms' ELSE n * interval '1 s' END, now() - interval '2 days'
FROM generate_series(1, %(runs)s) AS n
"""
_TEXTS = """
INSERT INTO texts
    (organization_id, id, origin_kind, origin_id, step, number_hash, phone_number, body, parts, state, due_at,
     expires_at, created_at, document_id)
SELECT %(organization_id)s, gen_random_uuid(), 'journey', gen_random_uuid(), '1', decode(md5(n::text), 'hex'),
    '+33600000000', 'Merci', 1, 'queued', now() - n * interval '1 ms', now() + %(expires_after)s, now(), %(journey_id)s
FROM generate_series(1, %(texts)s) AS n
"""
_WAITING = """
SELECT (SELECT count(*) FROM texts WHERE organization_id = %(id)s AND due_at <= now())
     + (SELECT count(*) FROM journey_runs WHERE organization_id = %(id)s AND due_at <= now())
"""


class _Paused:
    """An organization with a journey of which much waits, and another journey."""

    def __init__(self, database: Database, organization_id: UUID) -> None:
        self.database = database
        self.organization_id = organization_id
        self.journeys: list[UUID] = []

    async def do(self, act: Callable[[Tx], Awaitable[Any]]) -> tuple[Any, float]:
        """What the transaction returns, and how long it took."""
        started = time.monotonic()
        async with self.database.transaction() as tx:
            done = await act(tx)
        return done, time.monotonic() - started

    async def prepare(self, *, runs: int, due: int, texts: int) -> None:
        for name in ("Much", "Other"):
            definition = read_definition(json.dumps({"name": name, **JOURNEY}).encode())
            create = partial(manage.create_journey, organization_id=self.organization_id, definition=definition)
            made, _ = await self.do(create)
            self.journeys.append(made.row.id)
            await self.resume(made.row.id)
        values = {"organization_id": self.organization_id, "journey_id": self.journeys[0]}
        with psycopg.connect(self.database.url, autocommit=True) as connection:
            connection.execute("DELETE FROM stopped_origins")
            connection.execute(_RUNS, {**values, "runs": runs, "due": due})
            connection.execute(_TEXTS, {**values, "texts": texts, "expires_after": EXPIRES_AFTER})
            connection.execute("VACUUM ANALYZE journey_runs")
            connection.execute("VACUUM ANALYZE texts")

    async def pause(self, journey_id: UUID) -> float:
        return (await self.do(lambda tx: manage.pause(tx, self.organization_id, journey_id)))[1]

    async def resume(self, journey_id: UUID) -> float:
        return (await self.do(lambda tx: manage.activate(tx, self.organization_id, journey_id)))[1]

    async def order(self) -> list[UUID]:
        """A text of the other journey and an answer, to a number of which nothing is known: they are skipped when they
        are claimed, which takes as long as sending them to the simulator."""

        async def request(tx: Tx) -> list[UUID]:
            texting = await load_texting(tx, self.organization_id)
            assert texting is not None  # the organization exists
            orders = [
                TextOrder(
                    origin_kind=kind,
                    origin_id=new_uuid(),
                    step="1",
                    rendered="Merci",
                    phone_number=NUMBER,
                    link_origin=(self.journeys[1], "2") if kind is OriginKind.JOURNEY else None,
                )
                for kind in (OriginKind.JOURNEY, OriginKind.ANSWER)
            ]
            return [it.id for it in await request_texts(tx, self.organization_id, orders, texting=texting)]

        return (await self.do(request))[0]

    async def wait_until_ended(self, ids: list[UUID]) -> float:
        """How long it took until the queue had decided these texts."""
        started = time.monotonic()
        query = "SELECT count(*) FROM texts WHERE organization_id = %s AND id = ANY (%s::uuid[]) AND state = 'queued'"
        while True:
            async with self.database.reading() as tx:
                if await tx.fetch_value(query, (self.organization_id, ids)) == 0:
                    return time.monotonic() - started
            await asyncio.sleep(0.01)

    async def wait_until_due(self, rows: int) -> float:
        started = time.monotonic()
        while True:
            async with self.database.reading() as tx:
                if await tx.fetch_value(_WAITING, {"id": self.organization_id}) == rows:
                    return time.monotonic() - started
            await asyncio.sleep(0.2)


async def _measure_clicks(paused: _Paused) -> None:
    """Without a worker, so that nothing has been set aside before the click."""
    pauses, resumes = [], []
    for _ in range(CLICKS):
        pauses.append(await paused.pause(paused.journeys[0]))
        resumes.append(await paused.resume(paused.journeys[0]))
    print(
        f"the click: pause {statistics.median(pauses) * 1000:.0f} ms in the median, {max(pauses) * 1000:.0f} ms at"
        f" worst; resume {statistics.median(resumes) * 1000:.0f} and {max(resumes) * 1000:.0f} ms of {CLICKS}"
        f" (bar: {CLICK_BAR_S * 1000:.0f} ms)"
    )


async def _measure_setting_aside(paused: _Paused, queues: list[Queue], *, due: int) -> None:
    """With the queues running: the click, a text behind all of them, and the time until nothing is due."""
    loop = Loop(paused.database, queues)
    # Before the worker starts, so that none of the texts leaves.
    click_s = await paused.pause(paused.journeys[0])
    ids = await paused.order()
    paused.database.after_commit = loop.wake
    running = asyncio.create_task(loop.run())
    left_s = await paused.wait_until_ended(ids)
    aside_s = left_s + await paused.wait_until_due(0)
    print(
        f"another journey's text and an answer left {left_s:.2f} s after the pause (bar: {LEAVES_BAR_S:.0f} s); {due:,}"
        f" rows were set aside within {aside_s:.1f} s; the click took {click_s * 1000:.0f} ms"
    )
    left_s = await paused.wait_until_ended(await paused.order())
    print(f"with all set aside they left after {left_s:.2f} s")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def _measure_polls(paused: _Paused, beside: Database) -> None:
    """The polls of texts and runs while all is set aside, and of a database without what was set aside, by turns. The
    first decile, because other programs only make a poll longer."""
    for kind, is_full in (("poll", False), ("full poll", True)):
        took: dict[str, list[float]] = {"paused": [], "without": []}
        for _ in range(POLLS):
            for name, database in (("paused", paused.database), ("without", beside)):
                async with database.transaction() as tx:
                    started = time.perf_counter()
                    for queue in (TextQueue, RunQueue):
                        after = None if is_full else tx.now - timedelta(seconds=6)
                        await find_due_organizations(tx, queue.due, after=after)
                    took[name].append(time.perf_counter() - started)
        deciles = {name: statistics.quantiles(values, n=10)[0] for name, values in took.items()}
        ratio = deciles["paused"] / deciles["without"]
        print(f"a {kind}: {deciles['paused'] * 1e6:.0f} µs, {ratio:.3f} of one without (bar: 0.95 to 1.05)")


async def _measure(url: str, url_beside: str, organization_id: UUID, *, runs: int, due: int, texts: int) -> None:
    database, beside = Database(url, pool_max=8), Database(url_beside, pool_max=2)
    await database.open()
    await beside.open()
    try:
        paused = _Paused(database, organization_id)
        await paused.prepare(runs=runs, due=due, texts=texts)
        # The same without what is paused: the runs that wait for a time to come.
        await _Paused(beside, organization_id).prepare(runs=runs - due, due=0, texts=0)
        print(f"{runs:,} runs wait, {due:,} of them are due, and so are {texts:,} texts")
        await _measure_clicks(paused)
        providers: Providers = {}
        await _measure_setting_aside(paused, [TextQueue(providers), RunQueue()], due=due + texts)
        for it in (url, url_beside):
            with psycopg.connect(it, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE journey_runs")
                connection.execute("VACUUM ANALYZE texts")
        await _measure_polls(paused, beside)
        resumed = ResumeQueue(release_runs)
        click_s = await paused.resume(paused.journeys[0])
        started = time.monotonic()
        while await resumed.run_pass(database, organization_id):
            pass
        print(
            f"the resume took {click_s * 1000:.0f} ms, and all was due again {time.monotonic() - started:.1f} s later"
        )
    finally:
        await database.close()
        await beside.close()


def main(cluster: Cluster, *, runs: int, due: int, texts: int) -> None:
    organization = make_templates(cluster)[0]
    url, url_beside = cluster.clone("pauses"), cluster.clone("pauses_beside")
    asyncio.run(_measure(url, url_beside, UUID(organization.id), runs=runs, due=due, texts=texts))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000, help="waiting runs")
    parser.add_argument("--due", type=int, default=100_000, help="of these, how many are due")
    parser.add_argument("--texts", type=int, default=100_000, help="texts that are due")
    options = parser.parse_args()
    with running_cluster() as opened:
        main(opened, runs=options.runs, due=options.due, texts=options.texts)
