"""Prometheus metrics, counted in plain integers so that they cost a request almost nothing.

Each server process has its own counters, with its number in the label `worker`. After a restart the counters of a
process start at 0, which Prometheus recognizes as a reset; in a sum over all processes it would not. Each of several
server processes writes its counts into a shared folder once a second, and the process that serves `/metrics` reads the
files of the others.
"""

import contextlib
import itertools
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Upper bounds of the histograms' buckets.
SECONDS_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ITEMS_BOUNDS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
PUBLISH_INTERVAL_S: Final = 1.0
# A file that is older than this belongs to a process that has ended.
STALE_AFTER_S: Final = 10.0


class Histogram(msgspec.Struct):
    """A histogram: the upper bounds of its buckets, how many values fell in each bucket, and the sum of the values."""

    bounds: tuple[float, ...]
    counts: list[int] = []
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class ResponseRecord(msgspec.Struct, frozen=True, gc=False):
    """A response that the API has sent, for the request log; made for every request, from values that cost nothing to
    get. `path` is the path of the route and `references` are the ids in it; the times are of the monotonic clock."""

    method: str
    path: str
    references: tuple[str, ...]
    request_id: str
    status: int
    started: float
    ended: float
    # The body of a refusal; empty for a success, whose body may be large.
    problem: bytes = b""


class RouteMetrics(msgspec.Struct):
    """The counts of one route; a caller gets it once, when it builds its route table."""

    statuses: dict[int, int] = {}
    seconds: Histogram = msgspec.field(default_factory=lambda: Histogram(SECONDS_BOUNDS))

    def observe(self, status: int, seconds: float) -> None:
        statuses = self.statuses
        statuses[status] = statuses.get(status, 0) + 1
        self.seconds.observe(seconds)


class GaugeSnapshot(msgspec.Struct, frozen=True):
    name: str
    meaning: str
    label: str
    values: dict[str, float]
    is_counter: bool = False


class MetricsSnapshot(msgspec.Struct, frozen=True):
    """All counts of one process, as written to its file."""

    worker: str
    routes: dict[str, RouteMetrics]
    batches: dict[str, Histogram]
    gauges: list[GaugeSnapshot]


class Gauge(msgspec.Struct, frozen=True):
    """A metric whose values `read` returns by label; without a label it has one value, under an empty text."""

    name: str
    meaning: str
    label: str
    read: Callable[[], dict[str, float]]
    # Whether its values only grow, from 0 at the start of the process; its name then ends in `_total`.
    is_counter: bool = False


class Metrics:
    def __init__(self) -> None:
        self.process_name = "0"
        self._folder: Path | None = None
        self._routes: dict[str, RouteMetrics] = {}
        self._batches: dict[str, Histogram] = {}
        self._gauges: dict[str, Gauge] = {}

    def publish_to(self, folder: Path, *, process_name: str) -> None:
        """Publish to a folder that all server processes share, under this process's name."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self.process_name = process_name

    def route(self, name: str) -> RouteMetrics:
        """Return the counters of a route, named by its pattern (`GET /v1/stores/{store_id}`), never by a path."""
        return self._routes.setdefault(name, RouteMetrics())

    def batch_sizes(self, queue: str) -> Histogram:
        """Return the histogram of the sizes of a queue's batches."""
        return self._batches.setdefault(queue, Histogram(ITEMS_BOUNDS))

    def add_gauge(self, gauge: Gauge) -> None:
        self._gauges[gauge.name] = gauge

    def publish(self) -> None:
        """Replace the file of this process atomically."""
        if self._folder is None:
            return
        path = self._folder / f"{self.process_name}.json"
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        with contextlib.suppress(OSError):
            unfinished.write_bytes(msgspec.json.encode(self.snapshot()))
            unfinished.replace(path)

    def snapshot(self) -> MetricsSnapshot:
        return MetricsSnapshot(
            worker=self.process_name,
            routes={name: route for name, route in self._routes.items() if route.statuses},
            batches=self._batches,
            gauges=[GaugeSnapshot(g.name, g.meaning, g.label, g.read(), g.is_counter) for g in self._gauges.values()],
        )

    def render(self) -> bytes:
        """Render the response to Prometheus: the counts of this process and of the other running ones."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector([self.snapshot(), *self._read_other_processes()]))
        return generate_latest(registry)

    def _read_other_processes(self) -> Iterator[MetricsSnapshot]:
        for path in sorted(self._folder.glob("*.json")) if self._folder is not None else ():
            # The other process may end, or restart with another release, between the listing and the reading.
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                if time.time() - path.stat().st_mtime <= STALE_AFTER_S and path.stem != self.process_name:
                    yield msgspec.json.decode(path.read_bytes(), type=MetricsSnapshot)


class _Collector(Collector):
    def __init__(self, snapshots: Sequence[MetricsSnapshot]) -> None:
        self._snapshots = snapshots

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily("regulars_requests", "Requests answered.", labels=["route", "status", "worker"])
        seconds = HistogramMetricFamily(
            "regulars_request_seconds", "Time from the request to its answer.", labels=["route", "worker"]
        )
        items = HistogramMetricFamily("regulars_batch_items", "Items in a committed batch.", labels=["queue", "worker"])
        gauges: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
        for snapshot in self._snapshots:
            for name, route in snapshot.routes.items():
                for status, count in route.statuses.items():
                    requests.add_metric([name, str(status), snapshot.worker], count)
                _add_histogram(seconds, [name, snapshot.worker], route.seconds)
            for queue, histogram in snapshot.batches.items():
                _add_histogram(items, [queue, snapshot.worker], histogram)
            for gauge in snapshot.gauges:
                names = [gauge.label, "worker"] if gauge.label else ["worker"]
                kind = CounterMetricFamily if gauge.is_counter else GaugeMetricFamily
                family = gauges.setdefault(gauge.name, kind(gauge.name, gauge.meaning, labels=names))
                for label, value in gauge.values.items():
                    family.add_metric([label, snapshot.worker] if gauge.label else [snapshot.worker], value)
        return [requests, seconds, items, *gauges.values()]


def _add_histogram(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    names = [*(str(float(bound)) for bound in histogram.bounds), "+Inf"]
    cumulative = itertools.accumulate(histogram.counts)
    family.add_metric(labels, buckets=list(zip(names, cumulative, strict=True)), sum_value=histogram.total)


# The metrics of this process.
PROCESS_METRICS: Final = Metrics()
