"""Sends five times the highest load for half a minute: refusals must be fast, accepted tickets stored, and the recovery quick.

The system and the sender get one processor each, if there are two: the highest load is measured with the sender at
work, and it can still send five times that.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from tests.crash.clients import SALES
from tests.crash.growth import WAITING
from tests.crash.load import Report, Sender, read_accepted, ticket_name
from tests.crash.many_clients import may_open_many
from tests.crash.shops import STORE, Shop, open_shops
from tests.crash.world import Cluster, World, wait_until, world
from tests.support import samples

TIMES: Final = 5
SECONDS: Final = 30.0
MEASURING_S: Final = 20.0
CALLERS: Final = 256
# More than fit in the queues of both processes, so that these refuse requests.
CONNECTIONS: Final = 4_000
CONNECTIONS_MAX: Final = 6_000
REFUSED_MS_MAX: Final = 250.0
NORMAL_AGAIN_S_MAX: Final = 5.0
NORMAL_S: Final = 0.25
NORMAL_IN_A_ROW: Final = 10
REST_S_MAX: Final = 300.0
# Timer granularity: the last request leaves slightly before the end.
REACHED_MIN: Final = 0.98


@dataclass
class Overload:
    """The results of an overload."""

    sustainable_per_s: float
    limit_per_s: int = 0
    asked_per_s: float = 0.0
    sent_per_s: float = 0.0
    times: float = 0.0
    connections: int = 0
    unsent: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    refused_p50_ms: float = 0.0
    accepted_p50_ms: float = 0.0
    accepted: int = 0
    missing: int = 0
    normal_again_s: float = 0.0
    rest_s: float = 0.0
    sender_cpu_s: float = 0.0
    violations: list[str] = field(default_factory=list)


def overload(place: Cluster, servers: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Sends more than the machine can do: the queues fill, and further requests get 503."""
    may_open_many()
    own, others = _processors()
    with world(place, servers=servers, is_measured=True, processor=own) as running:
        shop = _shop(running)
        sustainable = _highest_rate(running, shop, others)
        return vars(_flood(running, shop, Overload(sustainable), others, say))


def rate_limit(place: Cluster, servers: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Sends more than the rate limit of a key, a fifth of what the machine can do: 429."""
    may_open_many()
    own, others = _processors()
    with world(place, servers=servers, is_measured=True, processor=own) as running:
        most = _highest_rate(running, _shop(running), others)
    limit = max(1, int(most / TIMES))
    limits = {"REGULARS_RATE_LIMIT_PER_S": str(limit), "REGULARS_RATE_LIMIT_BURST": str(limit)}
    with world(place, servers=servers, is_measured=True, processor=own, **limits) as running:
        return vars(_flood(running, _shop(running), Overload(limit, limit_per_s=limit), others, say))


def _processors() -> tuple[int | None, int | None]:
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1]) if len(allowed) > 1 else (None, None)


def _shop(running: World) -> Shop:
    [shop] = open_shops(running.url, ["c0de"], hooks_url=running.external.hooks_url, public_url=running.public_url)
    return shop


def _highest_rate(running: World, shop: Shop, processor: int | None) -> float:
    """The highest rate of accepted tickets, from callers who wait for responses, with a worker that keeps up."""
    began = time.monotonic()
    sender = Sender(
        shop,
        running.address.address,
        name="most",
        seconds=MEASURING_S,
        connections=CALLERS,
        processor=processor,
    )
    try:
        accepted = sender.report().all.answers.get("201", 0)
        _wait_until_idle(running)
        return round(accepted / (time.monotonic() - began), 1)
    finally:
        sender.end()


def _wait_until_idle(running: World) -> float:
    return wait_until(
        lambda: not any(running.rows(WAITING)[0]),
        seconds=REST_S_MAX,
        what="the worker does not come to rest",
        every_s=0.5,
    )


def _flood(running: World, shop: Shop, found: Overload, processor: int | None, say: Callable[[str], None]) -> Overload:
    found.asked_per_s = round(found.sustainable_per_s * TIMES, 1)
    say(f"{found.sustainable_per_s:.0f} tickets a second can be taken; now {found.asked_per_s:.0f} for {SECONDS:.0f} s")
    accepted = Path(tempfile.mkdtemp(prefix="regulars-over-")) / "accepted"
    sender = Sender(
        shop,
        running.address.address,
        name="over",
        seconds=SECONDS,
        rate=found.asked_per_s,
        connections=CONNECTIONS,
        connections_max=CONNECTIONS_MAX,
        counts_from_due=False,
        accepted=str(accepted),
        processor=processor,
    )
    lone = LoneTill(running, shop)
    lone.start()
    try:
        report = sender.report()
        lone.wait_until_normal()
    finally:
        sender.end()
        lone.stop.set()
        lone.join(15)
    _note(found, report, lone)
    names = {ticket_name(sender.order, number) for number in read_accepted(accepted)}
    rows = running.rows("SELECT external_id FROM sales_events WHERE organization_id = %s", shop.organization_id)
    found.accepted, found.missing = len(names), len(names - {row[0] for row in rows})
    found.violations = _judge(running, found)
    return found


def _note(found: Overload, report: Report, lone: "LoneTill") -> None:
    found.sent_per_s = round(report.sent_in_time / report.sending_s, 1)
    found.times = round(found.sent_per_s / found.sustainable_per_s, 2)
    found.answers, found.lost = report.all.answers, report.lost + report.unanswered
    found.refused_p50_ms, found.accepted_p50_ms = report.all.refused_p50_ms, report.all.accepted_p50_ms
    found.connections, found.unsent = report.connections, report.unsent
    found.normal_again_s = lone.seconds_until_normal(report.ended_at)
    found.sender_cpu_s = report.cpu_s


def _judge(running: World, found: Overload) -> list[str]:
    strange = [it for it in found.answers if it not in {"200", "201", "429", "503"}]
    said = [f"I10: answered {strange}"] if strange else []
    said += [f"I10: {found.lost} got no answer"] if found.lost else []
    said += [f"I1: {found.missing} acknowledged tickets are missing"] if found.missing else []
    said += ["STUCK: refused too slowly"] if found.refused_p50_ms > REFUSED_MS_MAX else []
    said += ["STUCK: not normal again in time"] if found.normal_again_s > NORMAL_AGAIN_S_MAX else []
    if found.times < TIMES * REACHED_MIN:
        said.append(f"not shown: only {found.times} times as much could be sent")
    try:
        found.rest_s = round(_wait_until_idle(running), 1)
    except AssertionError as error:
        said.append(str(error))
    [(counted,)] = running.rows("SELECT coalesce(sum(purchases + returns), 0) FROM sales_totals WHERE NOT is_hour")
    [(sales,)] = running.rows("SELECT count(*) FROM sales_events")
    return said + ([f"I3: {sales} sales, and {counted} were counted"] if counted != sales else [])


class LoneTill(threading.Thread):
    """A till that sends one ticket after the other, during the overload and after it."""

    def __init__(self, running: World, shop: Shop) -> None:
        super().__init__(name="lone-till", daemon=True)
        self._address = running.address.address
        self._headers = {"x-api-key": shop.key, "content-type": "application/json"}
        self._name = f"{shop.tag}-lone"
        # The start of each, and whether it was accepted in time.
        self.tickets: list[tuple[float, bool]] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.02):
            began = time.monotonic()
            is_sold = self._sell()
            self.tickets.append((began, is_sold and time.monotonic() - began < NORMAL_S))

    def _sell(self) -> bool:
        connection = HTTPConnection(*self._address, timeout=10)
        try:
            body = samples.json_bytes(samples.sale(STORE, external_id=samples.unique(self._name)))
            connection.request("POST", SALES, body, self._headers)
            return connection.getresponse().status == 201
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def wait_until_normal(self) -> None:
        until = time.monotonic() + 4 * NORMAL_AGAIN_S_MAX
        while time.monotonic() < until and not self._is_normal(self.tickets[-NORMAL_IN_A_ROW:]):
            time.sleep(0.05)

    def seconds_until_normal(self, moment: float) -> float:
        """Seconds from the moment until the start of the first series of accepted tickets."""
        after = [it for it in self.tickets if it[0] >= moment]
        for place, (began, _) in enumerate(after):
            if self._is_normal(after[place : place + NORMAL_IN_A_ROW]):
                return round(began - moment, 2)
        return round(time.monotonic() - moment, 2)

    def _is_normal(self, tickets: list[tuple[float, bool]]) -> bool:
        return len(tickets) == NORMAL_IN_A_ROW and all(is_good for _, is_good in tickets)
