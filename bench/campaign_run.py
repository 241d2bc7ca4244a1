"""Measures campaigns in the worker (prepare, send, pause, cancel, share) under a quarter of the API's highest load.

Times are wall-clock times or, where named so, processor times of all our processes and the database, which also
hold on a busy machine.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from campaign_shops import act, create_owner, draft, open_shop, send, send_all, wait_until_built
from database import Cluster, Organization, make_templates
from latency import open_loop
from load import wrk
from pages import Reader
from processes import Server, cpu_s, free_port, regulars_command, running_server, wait_until_started
from regulars.campaigns import manage
from regulars.campaigns.model import PIECE_IDS
from regulars.kit.ids import CAMPAIGN, new_uuid
from texts import _highest_rate

DATABASE = "bench_campaign_run"
PREPARED = 1_000_000
SENT = 10_000
STOPPED = 6_000
SHOPS, OF_EACH_SHOP = 20, 1_000
QUICK_SHARE = 0.02
DEADLINE_S = 400.0
POLL_S = 0.05
PAGES_READ = 15
# So many texts that the dead rows of the last minute, which autovacuum has not removed yet, matter little.
DISK_CUSTOMERS = 1_000_000
DISK_DEADLINE_S = 3_600.0
DISK_NAMED = 16
DISK_BYTES_MAX = 1_229
# How long after a pause the check for further texts lasts.
QUIET_S = 4.0
Say = Callable[[str], None]
PROFILES = """
INSERT INTO profiles (organization_id, id, external_id, first_name, created_at, updated_at)
SELECT %(organization_id)s, ('00000000-0000-7000-a000-' || lpad(n::text, 12, '0'))::uuid, 'P' || n, 'Claire', now(),
       now()
FROM generate_series(1, %(customers)s) AS n
"""
# An audience after freezing. The start is tomorrow, so that no recipient is queued.
FROZEN = """
INSERT INTO campaigns (organization_id, id, name, state, revision, definition, starts_at, not_after, frozen_at, due_at,
                       confirmed_recipients, created_at, updated_at)
VALUES (%(organization_id)s, %(id)s, 'Large', 'preparing', 1,
        '{"name": "Large", "include": ["seg_a"], "variants": [{"text": "Hello"}], "holdout_percent": 10}',
        now() + interval '1 day', now() + interval '3 days', now(), NULL, %(customers)s, now(), now())
"""
PIECES = """
INSERT INTO campaign_audiences (organization_id, campaign_id, piece, profile_ids)
SELECT %(organization_id)s, %(id)s, piece, string_agg(uuid_send(profile_id), ''::bytea)
FROM (
    SELECT id AS profile_id, row_number() OVER (ORDER BY id) / %(piece_ids)s AS piece FROM profiles
    WHERE organization_id = %(organization_id)s
) AS it GROUP BY piece
"""
SENT_SO_FAR = """
SELECT count(*) FILTER (WHERE state = 'sent'), extract(epoch FROM min(claimed_at)), extract(epoch FROM max(claimed_at))
FROM texts WHERE organization_id = %s AND origin_kind = 'campaign' AND origin_id = %s
"""

# Bytes per text or recipient in all tables that a campaign writes, with indexes.
SIZES = """
SELECT relname, pg_relation_size(oid)::float8 / CASE WHEN starts_with(relname, 'texts') THEN texts ELSE recipients END
FROM pg_class, (SELECT count(*) FROM texts) AS t (texts), (SELECT count(*) FROM campaign_recipients) AS r (recipients)
WHERE relkind IN ('r', 'i') AND (starts_with(relname, 'texts') OR starts_with(relname, 'campaign_'))
"""


@dataclass
class RunTimes:
    load_per_s: float = 0.0
    prepared: int = 0
    prepare_s: float = 0.0
    prepare_cpu_s: float = 0.0
    facts_behind_s: float = 0.0
    sent: int = 0
    first_text_s: float = 0.0
    last_text_s: float = 0.0
    texts_per_s: float = 0.0
    text_cpu_ms: float = 0.0
    sales_rate_share: float = 0.0
    # Median of the p99 of each half second, while texts are sent and for as long without a campaign.
    sales_p99_ms: float = 0.0
    sales_alone_p99_ms: float = 0.0
    # p99 of all requests, including those that a stalled disk delayed.
    sales_all_p99_ms: tuple[float, float] = (0.0, 0.0)
    page_ms: float = 0.0
    # All campaigns of this run, with the free space and the dead rows that autovacuum leaves.
    recipient_bytes: float = 0.0
    # The first campaign before any vacuum; and all campaigns without free space.
    recipient_bytes_at_first: float = 0.0
    recipient_bytes_dense: float = 0.0
    stops: dict[str, tuple[float, float]] = field(default_factory=dict)
    shares: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Bench:
    cluster: Cluster
    url: str
    server: Server
    neighbour: Organization
    rate: float
    say: Say

    def rows(self, query: str, *parameters: Any) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query, parameters).fetchall()  # type: ignore[arg-type]  # literals of this file

    def cpu_s(self) -> float:
        return cpu_s(self.server.pid) + cpu_s(self.cluster.postmaster_pid)

    @contextmanager
    def load(self, seconds: int, name: str) -> Iterator[Callable[[], dict[str, Any]]]:
        """Sends sales of another organization at a quarter of the highest rate; the block must end before the load."""
        with ThreadPoolExecutor(1) as pool:
            loading = pool.submit(
                open_loop, self.server.port, self.neighbour.key, rate=self.rate, seconds=seconds, name=name
            )
            time.sleep(2)
            yield loading.result


def measure_run(cluster: Cluster, say: Say, *, is_quick: bool, scale: float = 1.0, only: str = "") -> RunTimes:
    wrk.ensure_installed()
    scale = QUICK_SHARE if is_quick else scale
    neighbour = make_templates(cluster)[0]
    url = cluster.clone(DATABASE)
    highest = _highest_rate(cluster, neighbour, say)
    port = free_port()
    environment = {
        "DATABASE_URL": url,
        "REGULARS_SECRET_KEY": "k" * 40,
        "REGULARS_PORT": str(port),
        "REGULARS_RATE_LIMIT_PER_S": "0",
        "REGULARS_LOG_LEVEL": "warning",
    }
    times = RunTimes(load_per_s=highest / 4)
    with (
        tempfile.TemporaryDirectory(prefix="regulars-bench-run-") as folder,
        running_server(
            regulars_command(with_worker=True), {**environment, "REGULARS_DATA_DIR": folder}, port=port
        ) as server,
    ):
        bench = _Bench(cluster, url, server, neighbour, highest / 4, say)
        for name, part in PARTS.items():
            if not only or name in only.split(","):
                say(f"{name}…")
                part(bench, times, scale)
    cluster.drop(DATABASE)
    return times


def _prepare(bench: _Bench, times: RunTimes, scale: float) -> None:
    times.prepared = int(PREPARED * scale)
    organization_id, _ = open_shop(bench.url, "Prepared", customers=0)
    campaign_id = new_uuid()
    given = {"organization_id": organization_id, "id": campaign_id, "customers": times.prepared, "piece_ids": PIECE_IDS}
    with psycopg.connect(bench.url, autocommit=True) as connection:
        for statement in (PROFILES, FROZEN, PIECES, "VACUUM ANALYZE profiles"):
            connection.execute(statement, None if statement.startswith("VACUUM") else given)
    wait_until_built(bench.url, [organization_id])
    wait_until_started(bench.server.pid)
    behind: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.1):
            query = (
                "SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0) FROM outbox WHERE organization_id = %s"
            )
            behind.append(float(bench.rows(query, bench.neighbour.id)[0][0]))

    with bench.load(90 if scale == 1 else 20, "prepare") as result:
        looking = threading.Thread(target=look)
        looking.start()
        before, started = bench.cpu_s(), time.monotonic()
        bench.rows("UPDATE campaigns SET due_at = now() WHERE id = %s RETURNING 1", campaign_id)
        _wait(bench, "SELECT state = 'sending' FROM campaigns WHERE id = %s", campaign_id)
        times.prepare_s, times.prepare_cpu_s = time.monotonic() - started, bench.cpu_s() - before
        ended.set()
        looking.join()
        result()
    times.facts_behind_s = max(behind, default=0.0)


def _send(bench: _Bench, times: RunTimes, scale: float) -> None:
    times.sent = max(500, int(SENT * scale))
    organization_id, segment = open_shop(bench.url, "Sent", customers=times.sent, first_number=10_000_000)
    slug, token = create_owner(bench.url, organization_id, "Sent")
    campaign_id = draft(bench.url, organization_id, segment)
    wait_until_built(bench.url, [organization_id])
    wait_until_started(bench.server.pid)
    with bench.load(30, "alone") as result:
        alone_before, alone_since = bench.cpu_s(), time.monotonic()
        alone = result()
        alone_cpu_s = (bench.cpu_s() - alone_before) / (time.monotonic() - alone_since)
    reader = Reader(bench.server.port, slug, token)
    pages: list[float] = []
    with bench.load(60, "beside") as result:
        before, started = bench.cpu_s(), time.time()
        send(bench.url, organization_id, campaign_id, recipients=times.sent)
        while True:
            count, first, last = bench.rows(SENT_SO_FAR, organization_id, campaign_id)[0]
            if count == times.sent:
                break
            if time.time() - started > DEADLINE_S:
                raise TimeoutError(f"Only {count} of {times.sent} texts were sent.")
            if count and len(pages) < PAGES_READ:
                answer = reader.get(f"/o/{slug}/campaigns/{CAMPAIGN.encode(campaign_id)}")
                if answer.status_code != 200:
                    raise RuntimeError(f"the page of the campaign answered {answer.status_code}")
                pages.append(answer.took_ms)
            time.sleep(POLL_S)
        took_s, used_s = time.time() - started, bench.cpu_s() - before
        beside = result()
    times.first_text_s, times.last_text_s = float(first) - started, float(last) - started
    times.texts_per_s = times.sent / (float(last) - float(first))
    times.text_cpu_ms = 1000 * (used_s - took_s * alone_cpu_s) / times.sent
    times.page_ms = statistics.median(pages) if pages else 0.0
    times.sales_p99_ms = _median_p99_ms(beside, float(first), float(last))
    times.sales_alone_p99_ms = _median_p99_ms(alone, 0.0, time.time())
    times.sales_all_p99_ms = beside["p99_ms"], alone["p99_ms"]
    times.sales_rate_share = (beside["answered"] / beside["sent"]) / (alone["answered"] / alone["sent"])
    times.recipient_bytes_at_first = sum(size for _, size in bench.rows(SIZES))


def _median_p99_ms(load: dict[str, Any], first: float, last: float) -> float:
    """The host stalls the disk for a tenth of a second now and then, which would decide the p99 of a whole minute, with
    or without a campaign."""
    return statistics.median(p99_ms for since, p99_ms in load["windows"] if first <= since <= last)


def _measure_disk(bench: _Bench, times: RunTimes, scale: float) -> None:
    """Sends one more campaign; measures the tables as autovacuum left them, and compacted."""
    customers = max(1_000, int(DISK_CUSTOMERS * scale))
    shop = open_shop(bench.url, "Disk", customers=customers, first_number=70_000_000)
    wait_until_built(bench.url, [shop[0]])
    campaign_id = draft(bench.url, *shop)
    send(bench.url, shop[0], campaign_id, recipients=customers)
    _wait(bench, "SELECT state = 'ended' FROM campaigns WHERE id = %s", campaign_id, deadline_s=DISK_DEADLINE_S)
    as_left = dict(bench.rows(SIZES))
    with psycopg.connect(bench.url, autocommit=True) as connection:
        for table in ("texts", "campaign_recipients", "campaign_totals", "campaign_audiences"):
            connection.execute(f"VACUUM FULL {table}")  # type: ignore[arg-type]  # the names above
    dense = dict(bench.rows(SIZES))
    times.recipient_bytes, times.recipient_bytes_dense = sum(as_left.values()), sum(dense.values())
    largest = sorted(as_left, key=lambda name: -as_left[name])[:DISK_NAMED]
    named = ", ".join(f"{name} {as_left[name]:.0f} / {dense[name]:.0f}" for name in largest)
    bench.say(f"bytes of a recipient, and without free space: {named}")


def _stop(bench: _Bench, times: RunTimes, scale: float) -> None:
    recipients = max(1_500, int(STOPPED * scale))
    organization_id, segment = open_shop(bench.url, "Stopped", customers=recipients, first_number=30_000_000)
    wait_until_built(bench.url, [organization_id])
    for name, stop in (("pause", manage.pause), ("cancel", manage.cancel)):
        campaign_id = draft(bench.url, organization_id, segment)
        wait_until_started(bench.server.pid)
        with bench.load(25, name) as result:
            send(bench.url, organization_id, campaign_id, recipients=recipients)
            _wait(
                bench,
                "SELECT count(*) > 600 FROM texts WHERE origin_id = %s AND state = 'sent'",
                campaign_id,
            )
            started = time.time()
            act(bench.url, lambda tx, stop=stop, it=campaign_id: stop(tx, organization_id, it, by="ann"))  # type: ignore[misc]  # bound now
            answered = time.time()
            time.sleep(QUIET_S)
            [(_, _, last)] = bench.rows(SENT_SO_FAR, organization_id, campaign_id)
            [(ended,)] = bench.rows(
                "SELECT extract(epoch FROM max(ended_at)) FROM texts WHERE origin_id = %s AND state = 'sent'",
                campaign_id,
            )
            result()
        times.stops[name] = (answered - started, max(float(last), float(ended)) - answered)


def _share(bench: _Bench, times: RunTimes, scale: float) -> None:
    each = max(100, int(OF_EACH_SHOP * scale))
    shops = [
        open_shop(bench.url, f"Shop {number}", customers=each, first_number=50_000_000 + number * 100_000)
        for number in range(SHOPS)
    ]
    campaigns = [draft(bench.url, *shop) for shop in shops]
    wait_until_built(bench.url, [organization_id for organization_id, _ in shops])
    wait_until_started(bench.server.pid)
    send_all(
        bench.url,
        [(organization_id, it) for (organization_id, _), it in zip(shops, campaigns, strict=True)],
        recipients=each,
    )
    at_first = _sent_when(bench, campaigns, lambda found: min(found) > 0)
    later = _sent_when(bench, campaigns, lambda found: sum(found) - sum(at_first) > SHOPS * each * 0.3)
    times.shares = sorted(after - before for before, after in zip(at_first, later, strict=True))
    bench.say(f"sent before and at the end of the window: {sorted(zip(at_first, later, strict=True))}")


def _sent_when(bench: _Bench, campaigns: list[UUID], holds: Callable[[list[int]], bool]) -> list[int]:
    """Waits for the condition; returns how many texts of each campaign were sent by then."""
    query = "SELECT origin_id, count(*) FROM texts WHERE origin_id = ANY (%s) AND state = 'sent' GROUP BY origin_id"
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        found = dict(bench.rows(query, campaigns))
        counts = [found.get(campaign_id, 0) for campaign_id in campaigns]
        if holds(counts):
            return counts
        time.sleep(POLL_S)
    raise TimeoutError(f"texts of campaigns: {counts}")


def _wait(bench: _Bench, query: str, *parameters: UUID, deadline_s: float = DEADLINE_S) -> None:
    until = time.monotonic() + deadline_s
    while not bench.rows(query, *parameters)[0][0]:
        if time.monotonic() > until:
            raise TimeoutError(query)
        time.sleep(POLL_S)


PARTS: dict[str, Callable[[_Bench, RunTimes, float], None]] = {
    "send": _send,
    "stop": _stop,
    "share": _share,
    "disk": _measure_disk,
    "prepare": _prepare,
}


class Line(NamedTuple):
    """A measured value and its target; one without a target explains the line above."""

    label: str
    figure: str
    bar: str = ""
    is_reached: bool = True


def lines(times: RunTimes) -> list[Line]:
    mean = statistics.mean(times.shares or [1])
    least, most = min(times.shares or [0]) / mean, max(times.shares or [0]) / mean
    stops = [
        line
        for name, (answered_s, last_s) in times.stops.items()
        for line in (
            Line(f"{name} at full rate: answered", f"{answered_s:.2f} s", "1 s", answered_s <= 1),
            Line("  last text after the answer", f"{max(0.0, last_s):.2f} s", "2 s", last_s <= 2),
        )
    ]
    return [
        Line(f"prepare {times.prepared:,} recipients", f"{times.prepare_s:.1f} s", "60 s", times.prepare_s <= 60),
        Line("  processor time, sales included", f"{times.prepare_cpu_s:.1f} s"),
        Line("  facts of other organizations wait", f"{times.facts_behind_s:.1f} s", "2 s", times.facts_behind_s <= 2),
        Line(f"{times.sent:,} recipients: first text", f"{times.first_text_s:.1f} s", "5 s", times.first_text_s <= 5),
        Line("  last text", f"{times.last_text_s:.1f} s", "40 s", times.last_text_s <= 40),
        Line("sustained", f"{times.texts_per_s:.0f} texts/s", "300", times.texts_per_s >= 300),
        Line("  processor time of a text", f"{times.text_cpu_ms:.2f} ms"),
        Line(
            "sales beside it, of those without", f"{times.sales_rate_share:.0%}", "90 %", times.sales_rate_share >= 0.9
        ),
        Line("  p99 in the median half second", f"{times.sales_p99_ms:.0f} ms", "25 ms", times.sales_p99_ms <= 25),
        Line("    without", f"{times.sales_alone_p99_ms:.0f} ms"),
        Line("    of all, and without", "{:.0f} ms, {:.0f} ms".format(*times.sales_all_p99_ms)),
        *stops,
        Line(
            "disk of a recipient",
            f"{times.recipient_bytes:,.0f} bytes",
            f"{DISK_BYTES_MAX:,}",
            times.recipient_bytes <= DISK_BYTES_MAX,
        ),
        Line("  of the first campaign, before any vacuum", f"{times.recipient_bytes_at_first:,.0f} bytes"),
        Line("  without free space", f"{times.recipient_bytes_dense:,.0f} bytes"),
        Line("its page while sending", f"{times.page_ms:.0f} ms", "100 ms", times.page_ms <= 100),
        Line(
            f"{SHOPS} campaigns at once, of a share",
            f"{least:.0%} to {most:.0%}",
            "80 to 120 %",
            least >= 0.8 and most <= 1.2,
        ),
    ]
