"""Measures credits of purchases: computing them, the statements of pages, and what attribution adds to a sale."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from uuid import UUID

from database import Cluster, make_templates
from latency import open_loop
from processes import cpu_s
from regulars.attribution.credits import CreditFilter, list_credits
from regulars.attribution.jobs import CustomerQueue, RecomputeQueue
from regulars.attribution.recompute import request_recompute
from regulars.kit.db import Database, Tx
from regulars.kit.ids import first_id_at
from regulars.kit.keyset import PageRequest
from regulars.sales.facts import SalesRecorded
from regulars.work import outbox
from regulars.work.facts import Fact
from regulars.work.outbox import OutboxQueue
from regulars.work.wake import INTERVAL_S
from regulars.worker import LISTENERS
from sale_cost import RATES
from scenarios import Scenario, start

CUSTOMERS_MAX: Final = 20_000
# Sales per second. At two a second each sale is handled alone, which is shown but has no bar.
ALL_RATES: Final = (2.0, *RATES)
# The listener handles this many sales at each rate.
HANDLED: Final = {2.0: 2_000, 50.0: 10_000, 300.0: 15_000, 2_000.0: 20_000}
LISTENER: Final = "attribution.sales"
TURNS: Final = 5
RECORDING_DATABASE: Final = "bench_recording"
WARM_S: Final = 3
# The worker analyzes new rows in this time after the first sales.
SETTLE_S: Final = 10
# At two sales a second these are 10 sales a turn.
RECORDING_S: Final = 5
# Attribution adds at most this share to the processor time of a sale.
SHARE_MAX: Final = 0.03
PAGE_ROWS: Final = 50
_TEXTS = """
INSERT INTO texts (organization_id, id, origin_kind, origin_id, step, profile_id, body, parts, state, expires_at,
                   created_at, claimed_at)
SELECT organization_id,
       (lpad(to_hex((extract(epoch FROM fed_at) * 1000)::bigint), 12, '0')
           || substr(md5(profile_id::text), 1, 20))::uuid,
       'campaign', campaign_id, profile_id::text, profile_id, 'Hello', 1, 'delivered', fed_at, fed_at, fed_at
FROM campaign_recipients
WHERE organization_id = %(organization_id)s AND campaign_id = %(campaign_id)s AND fed_at IS NOT NULL
"""
# Each customer with a text buys an hour after it, and one in five returns the purchase two days later.
_SALES = """
INSERT INTO sales_events (organization_id, id, store_id, profile_id, occurred_at, created_at, total_amount_cents,
                          total_discount_cents, external_id, type, currency, line_items, unit_millionths, line_count)
SELECT t.organization_id,
       (lpad(to_hex((extract(epoch FROM it.at) * 1000)::bigint), 12, '0')
           || substr(md5(t.profile_id::text || it.type), 1, 20))::uuid,
       t.profile_id, t.profile_id, it.at, it.at, 1000, 0, t.profile_id::text || it.type, it.type, 'EUR',
       '[{"quantity": 1, "product": {"external_id": "A"}, "total_price_cents": 1000}]', 1000000, 1
FROM (
    SELECT organization_id, profile_id, claimed_at, row_number() OVER () AS place FROM texts
    WHERE organization_id = %(organization_id)s LIMIT %(customers)s
) AS t
CROSS JOIN LATERAL (
    VALUES (t.claimed_at + interval '1 hour', 'PURCHASE'), (t.claimed_at + interval '2 days', 'RETURN')
) AS it (at, type)
WHERE it.type = 'PURCHASE' OR t.place %% 5 = 0
"""
_NEW_SALES = """
SELECT id FROM sales_events AS s
WHERE organization_id = %(organization_id)s AND id > %(after)s AND profile_id IS NOT NULL AND %(is_texted)s = EXISTS (
    SELECT FROM texts WHERE organization_id = %(organization_id)s AND profile_id = s.profile_id
)
ORDER BY id
LIMIT %(limit)s
"""


@dataclass
class CreditTimes:
    customers: int = 0
    credits: int = 0
    # Processor time of the worker and the database.
    us_per_customer: float = 0.0
    tickets_ms: float = 0.0
    # By rate: processor time of the server, the worker and the database for a sale, without attribution and without
    # what they use when nothing happens.
    recording_us: dict[float, float] = field(default_factory=dict)
    # By rate: processor time of attribution's listener, in the worker and the database, for a sale whose customer got
    # no text, and for one whose customer got a text an hour before.
    untexted_us: dict[float, float] = field(default_factory=dict)
    texted_us: dict[float, float] = field(default_factory=dict)

    @property
    def is_reached(self) -> bool:
        return all(self.untexted_us[rate] <= SHARE_MAX * self.recording_us[rate] for rate in RATES)


def show_credits(times: CreditTimes, say: Callable[[str], None]) -> None:
    say(
        f"  credits: {times.customers:,} customers computed, {times.credits:,} purchases credited;"
        f" {times.us_per_customer:,.0f} µs of processor time a customer"
    )
    say(f"  reading the tickets of a campaign: {times.tickets_ms:.1f} ms")
    for rate, recorded in times.recording_us.items():
        untexted, texted = times.untexted_us[rate], times.texted_us[rate]
        say(
            f"  a sale at {rate:,.0f} a second: {recorded:,.0f} µs; attribution adds {untexted:.0f} µs"
            f" ({100 * untexted / recorded:.1f} %), or {texted:.0f} µs ({100 * texted / recorded:.1f} %) after a text"
        )
    verdict = "reached" if times.is_reached else "MISSED"
    say(f"  attribution adds at most 3 % to a sale without a text, from 50 a second on: {verdict}")


async def measure_credits(
    cluster: Cluster, database: Database, organization_id: UUID, campaign_id: UUID
) -> CreditTimes:
    times = CreditTimes()
    given = {"organization_id": organization_id, "campaign_id": campaign_id, "customers": CUSTOMERS_MAX}
    async with database.transaction() as tx:
        await tx.execute(_TEXTS, given)
        await tx.execute(_SALES, given)
        await request_recompute(tx, organization_id, by=None)
    async with database.connection() as connection:
        await connection.execute("VACUUM ANALYZE texts")
    await _compute(cluster, database, organization_id, times)
    await _read_tickets(database, organization_id, campaign_id, times)
    # Usually few customers wait to be computed; here a million does after the recomputation.
    async with database.transaction() as tx:
        await tx.execute("DELETE FROM attribution_customers WHERE organization_id = %s", (organization_id,))
    async with database.connection() as connection:
        await connection.execute("VACUUM attribution_customers")
    times.untexted_us = await _handle_sales(database, organization_id, is_texted=False)
    times.texted_us = await _handle_sales(database, organization_id, is_texted=True)
    return times


def measure_recording(cluster: Cluster) -> dict[float, float]:
    """Sends sales of an organization without texts. The server wakes the worker once per interval, so the rate decides
    how many sales the listeners get at a time."""
    organization = make_templates(cluster)[0]
    scenario = Scenario("recording", "recording", "regulars")
    taken = {}
    with start(scenario, cluster.clone(RECORDING_DATABASE)) as server:
        open_loop(server.port, organization.key, rate=max(RATES), seconds=WARM_S, name="warm")
        time.sleep(SETTLE_S)

        def measure_turns(act: Callable[[int], int]) -> float:
            """The processor time of one sale, or of a turn without sales: the median, because autovacuum may run."""
            turns = []
            for turn in range(TURNS):
                started = _cpu_s(server.pid, cluster.postmaster_pid)
                sales = act(turn)
                turns.append((_cpu_s(server.pid, cluster.postmaster_pid) - started) / sales)
            return statistics.median(turns)

        def sleep(_turn: int) -> int:
            time.sleep(RECORDING_S)
            return 1

        idle_s = measure_turns(sleep)
        for rate in ALL_RATES:

            def send(turn: int, rate: float = rate) -> int:
                name = f"r{rate:.0f}-{turn}"
                return int(open_loop(server.port, organization.key, rate=rate, seconds=RECORDING_S, name=name)["sent"])

            taken[rate] = 1e6 * (measure_turns(send) - idle_s / (rate * RECORDING_S))
    cluster.drop(RECORDING_DATABASE)
    return taken


def _cpu_s(*pids: int) -> float:
    return sum(map(cpu_s, pids))


async def _compute(cluster: Cluster, database: Database, organization_id: UUID, times: CreditTimes) -> None:
    walk, queue = RecomputeQueue(), CustomerQueue()
    while await walk.run_pass(database, organization_id):
        pass
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE attribution_customers SET due_at = now() WHERE organization_id = %s", (organization_id,)
        )
    waiting = await _count(database, organization_id, "attribution_customers")
    before = time.process_time() + cpu_s(cluster.postmaster_pid)
    for _ in range(CUSTOMERS_MAX // queue.batch_rows):
        if not await queue.run_pass(database, organization_id):
            break
    taken = time.process_time() + cpu_s(cluster.postmaster_pid) - before
    times.customers = waiting - await _count(database, organization_id, "attribution_customers")
    times.credits = await _count(database, organization_id, "attributed_sales")
    times.us_per_customer = 1e6 * taken / max(1, times.customers)


async def _count(database: Database, organization_id: UUID, table: str) -> int:
    async with database.reading() as tx:
        rows = await tx.fetch(f"SELECT count(*) FROM {table} WHERE organization_id = %s", (organization_id,))  # type: ignore[arg-type]  # noqa: S608  # a name above
    return int(rows[0][0])


async def _read_tickets(database: Database, organization_id: UUID, campaign_id: UUID, times: CreditTimes) -> None:
    wanted = CreditFilter(origin_id=campaign_id, currency="EUR")
    taken = []
    for _ in range(TURNS):
        started = time.perf_counter()
        async with database.reading() as tx:
            await list_credits(tx, organization_id, wanted, PageRequest(PAGE_ROWS))
        taken.append(time.perf_counter() - started)
    times.tickets_ms = 1000 * statistics.median(taken)


async def _handle_sales(database: Database, organization_id: UUID, *, is_texted: bool) -> dict[float, float]:
    """Handles the facts of stored sales again, and reads the clocks of this process and of the database's around
    attribution's listener."""
    used: list[float] = []

    async def handle_sales(tx: Tx, organization_id: UUID, facts: Sequence[Fact]) -> None:
        clocks = time.CLOCK_PROCESS_CPUTIME_ID, _clock_of(tx.connection.info.backend_pid)
        before = sum(map(time.clock_gettime, clocks))
        await LISTENERS[SalesRecorded][LISTENER](tx, organization_id, facts)
        used.append(sum(map(time.clock_gettime, clocks)) - before)

    queue = OutboxQueue({**LISTENERS, SalesRecorded: {**LISTENERS[SalesRecorded], LISTENER: handle_sales}})
    async with database.reading() as tx:
        after = first_id_at(tx.now - timedelta(days=60))
        given = {
            "organization_id": organization_id,
            "after": after,
            "is_texted": is_texted,
            "limit": max(HANDLED.values()),
        }
        rows = await tx.fetch(_NEW_SALES, given)
    sales = [row[0] for row in rows]
    taken = {}
    for rate, handled in HANDLED.items():
        used.clear()
        # The server wakes the worker once per interval, so the rate decides how many sales the listener gets at a time.
        batch = int(rate * INTERVAL_S)
        for first in range(0, handled, batch):
            async with database.transaction() as tx:
                await outbox.record(tx, organization_id, [SalesRecorded(sales[first : first + batch])])
            await queue.run_pass(database, organization_id)
        taken[rate] = 1e6 * sum(used) / handled
    return taken


def _clock_of(pid: int) -> int:
    """The clock of a process's processor time, as `clock_getcpuclockid` of the C library makes it."""
    return ~pid << 3 | 2
