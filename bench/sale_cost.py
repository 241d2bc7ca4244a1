"""Measures the processor time of a sale in the server, the worker and the database, at several rates.

With another commit beside it, both servers run at the same time and get the same load in turns.
"""

import contextlib
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from database import TEMPLATE, TEMPLATE_BESIDE, Cluster, make_template_of_commit, make_templates
from latency import open_loop
from processes import Server, cpu_s
from scenarios import Scenario, start

# Sales per second. The worker handles those of half a second together.
RATES: Final = (50.0, 300.0, 2_000.0)
TURN_S: Final = 3
TURNS: Final = 8
QUICK_TURNS: Final = 2
HERE: Final = "this release"

Say = Callable[[str], None]


@dataclass
class SaleCosts:
    # By rate and source, in µs, the median of the turns.
    us: dict[float, dict[str, float]] = field(default_factory=dict)


def measure(cluster: Cluster, say: Say, *, is_quick: bool, beside: Mapping[str, Path] | None = None) -> SaleCosts:
    organization = make_templates(cluster)[0]
    sources: dict[str, Path | None] = {HERE: None, **(beside or {})}
    with contextlib.ExitStack() as running:
        servers: dict[str, Server] = {}
        for number, (name, source) in enumerate(sources.items()):
            if source is not None:
                make_template_of_commit(cluster, source)
            url = cluster.clone(f"bench_sale_{number}", template=TEMPLATE_BESIDE if source else TEMPLATE)
            scenario = Scenario(name, "sale", "regulars", source=source)
            servers[name] = running.enter_context(start(scenario, url))
        costs = SaleCosts()
        for rate in RATES:
            turns: dict[str, list[float]] = {name: [] for name in servers}
            # The first turn warms up.
            for turn in range(1 + (QUICK_TURNS if is_quick else TURNS)):
                for name, server in servers.items():
                    before = cpu_s(server.pid) + cpu_s(cluster.postmaster_pid)
                    sent = open_loop(
                        server.port, organization.key, rate=rate, seconds=TURN_S, name=f"{rate:.0f}-{turn}"
                    )["sent"]
                    used = cpu_s(server.pid) + cpu_s(cluster.postmaster_pid) - before
                    if turn:
                        turns[name].append(1e6 * used / sent)
            costs.us[rate] = {name: statistics.median(found) for name, found in turns.items()}
            say(f"{rate:,.0f} sales a second measured")
        return costs


def show(costs: SaleCosts, say: Say) -> None:
    for rate, by_source in costs.us.items():
        here = by_source[HERE]
        others = [
            f"{us:,.0f} µs at {name}: {100 * (here / us - 1):+.1f} %" for name, us in by_source.items() if name != HERE
        ]
        say(f"a sale, at {rate:,.0f} a second: {'; '.join([f'{here:,.0f} µs of processor time', *others])}")


def as_json(costs: SaleCosts) -> dict[str, Any]:
    return asdict(costs)
