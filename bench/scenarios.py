"""Defines the scenarios, one per row of the table, and runs one repetition of a scenario."""

import re
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pgbench
import report
from database import (
    AUTOVACUUM_OFF,
    ORGANIZATIONS,
    TEMPLATE,
    TEMPLATE_BESIDE,
    TEMPLATE_OF_MANY,
    Cluster,
    Organization,
)
from load import wrk
from processes import (
    Server,
    cpu_s,
    free_port,
    jobs_cpu_s,
    machine_cpu_s,
    memory_mib,
    regulars_command,
    running_server,
    wait_until_started,
)

CONNECTIONS = 64
BATCH_CONNECTIONS = 8
BATCH_ITEMS = 100
BATCH_PROFILES = 500
# After a checkpoint PostgreSQL logs the first change of each page as a full page. Here a checkpoint precedes every
# measurement instead of every quarter of an hour; this warm-up is long enough for those pages.
GROWN_WARM_S = 20
TURN_S = 2
# Per process. Pools of 8, 16, 32 and 64 differ less than their spread; this one had the highest medians.
PEER_CONNECTIONS = 16


@dataclass(frozen=True)
class Scenario:
    """A row of the table. `load` names the generator in load/tickets.lua; a batch request counts as many rows."""

    name: str
    group: str
    app: str
    load: str = "sales"
    workers: int = 1
    connections: int = CONNECTIONS
    rows_per_request: int = 1
    keys: int = 1
    counted: str | None = "sales_events"
    # The database to measure in; otherwise each measurement gets a fresh copy of the template.
    database: str | None = None
    template: str = TEMPLATE
    environment: Mapping[str, str] = field(default_factory=dict)
    with_worker: bool = True
    # Seconds of load before the measurement; otherwise those that the run requested.
    warm_s: int | None = None
    # A folder with the source of another commit, instead of this one.
    source: Path | None = None
    # Whether it is measured alternately with the others of its group, a few seconds at a time.
    is_in_turns: bool = False


@dataclass(frozen=True)
class Measurement:
    rate: float
    p50_ms: float
    p99_ms: float
    app_us: float
    jobs_us: float
    database_us: float
    load_us: float
    memory_mib: float
    # Cores that other programs used meanwhile.
    others_cores: float
    errors: int


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("pgbench", "pgbench", "pgbench"),
    Scenario("FastAPI, 1 worker", "fastapi", "fastapi"),
    Scenario("FastAPI, 2 workers", "fastapi", "fastapi", workers=2),
    Scenario("FastAPI, 1 worker, keys", "fastapi-keys", "fastapi", load="sales-with-keys"),
    Scenario("Regulars sales, 1 worker", "sales", "regulars"),
    Scenario("Regulars sales, 2 workers", "sales", "regulars", workers=2),
    Scenario("Regulars sales, 1 worker, keys", "keys", "regulars", load="sales-with-keys"),
    Scenario("Regulars sales, 2 workers, keys", "keys", "regulars", load="sales-with-keys", workers=2),
    Scenario("Regulars duplicates", "duplicates", "regulars", load="duplicates", counted=None),
    Scenario("Regulars profiles", "profiles", "regulars", load="profiles", counted=None),
    Scenario("Regulars profiles, all new", "profiles", "regulars", load="profiles-new", counted=None),
    Scenario("Regulars profiles, one attribute", "profiles", "regulars", load="profiles-changing", counted=None),
    Scenario(
        f"Regulars profiles in batches of {BATCH_PROFILES} (rows/s)",
        "profiles",
        "regulars",
        load="profiles-batch",
        connections=BATCH_CONNECTIONS,
        rows_per_request=BATCH_PROFILES,
        counted=None,
    ),
    Scenario(report.OPT_INS, "opt-ins", "regulars", load="opt-ins", counted=None),
    Scenario(report.LONE, "lone", "regulars", connections=1),
    Scenario("Regulars GET profile by external_id", "get", "regulars", load="get-profile", counted=None),
    Scenario("Regulars GET sale by external_id", "get", "regulars", load="get-sale", counted=None),
    Scenario(
        f"Regulars batch of {BATCH_ITEMS} (rows/s)",
        "batch",
        "regulars",
        load="sales-batch",
        connections=BATCH_CONNECTIONS,
        rows_per_request=BATCH_ITEMS,
    ),
    Scenario(
        f"Regulars sales, {ORGANIZATIONS} organizations",
        "organizations",
        "regulars",
        load="sales-organizations",
        keys=ORGANIZATIONS,
        template=TEMPLATE_OF_MANY,
    ),
)


def close_scenarios(beside: tuple[str, Path] | None = None) -> list[Scenario]:
    """Scenarios near their promised ratio, to be measured in turns.

    With `beside`, another commit and its source, fewer are measured, each also with that source: more servers at once
    would need more connections than the embedded PostgreSQL has.
    """
    names = report.CLOSE if beside is None else tuple(map(report.in_turns, (report.CEILING, *report.COMPARED)))
    close = [
        replace(scenario, name=report.in_turns(scenario.name), group="turns", is_in_turns=True)
        for scenario in SCENARIOS
        if report.in_turns(scenario.name) in names
    ]
    if beside is None:
        return close
    commit, source = beside
    return close + [
        replace(scenario, name=f"{scenario.name}, at {commit}", source=source, template=TEMPLATE_BESIDE)
        for scenario in close
        if scenario.app == "regulars"
    ]


def grown_scenario(app: str, database: str | None, label: str) -> Scenario:
    """The scenario on a database with so many sales."""
    name = "pgbench" if app == "pgbench" else "Regulars sales, 1 worker"
    warm_s = None if database is None else GROWN_WARM_S
    is_in_turns = app == "regulars"
    return Scenario(f"{name}, {label} stored", "growth", app, database=database, warm_s=warm_s, is_in_turns=is_in_turns)


def measure(
    cluster: Cluster, organizations: Sequence[Organization], scenario: Scenario, *, name: str, seconds: int, warm_s: int
) -> Measurement:
    """Runs one repetition with its own server and database, unless the scenario names a database."""
    warm_s = warm_s if scenario.warm_s is None else scenario.warm_s
    database = _database_of(scenario)
    url = cluster.url_of(database) if scenario.database else cluster.clone(database, template=scenario.template)
    try:
        if scenario.app == "pgbench":
            pgbench.run(cluster, organizations[0], database, seconds=warm_s)
            return _insert(cluster, organizations[0], scenario, seconds=seconds)
        with start(scenario, url) as server:
            wait_until_started(server.pid)
            return _load(cluster, organizations, scenario, server, name=name, seconds=seconds, warm_s=warm_s)
    finally:
        if not scenario.database:
            cluster.drop(database)


@contextmanager
def start(scenario: Scenario, url: str) -> Iterator[Server]:
    port = free_port()
    if scenario.app == "fastapi":
        with running_server(_peer_command(scenario, port), _peer_environment(url), port=port) as server:
            yield server
        return
    with tempfile.TemporaryDirectory(prefix="regulars-bench-run-") as folder:
        environment = {
            "DATABASE_URL": url,
            "REGULARS_DATA_DIR": folder,
            "REGULARS_HOST": "127.0.0.1",
            "REGULARS_PORT": str(port),
            "REGULARS_WORKERS": str(scenario.workers),
            "REGULARS_RATE_LIMIT_PER_S": "0",
            "REGULARS_LOG_LEVEL": "warning",
            **({} if scenario.source is None else {"PYTHONPATH": str(scenario.source)}),
            **scenario.environment,
        }
        command = regulars_command(with_worker=scenario.with_worker)
        with running_server(command, environment, port=port) as server:
            yield server


def measure_in_turns(
    cluster: Cluster, organizations: Sequence[Organization], scenarios: Sequence[Scenario], *, turns: int, warm_s: int
) -> dict[str, list[Measurement]]:
    """Loads several servers alternately, two seconds each.

    For comparisons whose difference is smaller than the drift of the machine's speed. A turn begins when the jobs of
    the previous one are done.
    """
    with ExitStack() as stack:
        servers = {}
        for scenario in scenarios:
            database = _database_of(scenario)
            if not scenario.database:
                cluster.clone(database, template=scenario.template)
                stack.callback(cluster.drop, database)
                # As for filled databases, for the same reason.
                cluster.execute(AUTOVACUUM_OFF, database)
            if scenario.app == "pgbench":
                pgbench.run(cluster, organizations[0], database, seconds=warm_s)
                continue
            server = stack.enter_context(start(scenario, cluster.url_of(database)))
            wait_until_started(server.pid)
            _send(organizations, scenario, server, name="tw", seconds=scenario.warm_s or warm_s)
            wait_until_started(server.pid)
            servers[scenario.name] = server
        before = {scenario.name: _stored(cluster, scenario) for scenario in scenarios}
        measured: dict[str, list[Measurement]] = {scenario.name: [] for scenario in scenarios}
        answered = dict.fromkeys(measured, 0)
        for turn in range(turns):
            for scenario in scenarios if turn % 2 == 0 else reversed(scenarios):
                if scenario.app == "pgbench":
                    measured[scenario.name].append(_insert(cluster, organizations[0], scenario, seconds=TURN_S))
                    continue
                server = servers[scenario.name]
                done, rows = _observe(cluster, organizations, scenario, server, name=f"t{turn}", seconds=TURN_S)
                measured[scenario.name].append(done)
                answered[scenario.name] += rows
                wait_until_started(server.pid)
        for scenario in scenarios:
            if scenario.app == "pgbench":
                continue
            lost = answered[scenario.name] - (_stored(cluster, scenario) - before[scenario.name])
            measured[scenario.name] = [_with_lost(done, scenario, lost) for done in measured[scenario.name]]
    return measured


def _insert(cluster: Cluster, organization: Organization, scenario: Scenario, *, seconds: int) -> Measurement:
    done = pgbench.run(cluster, organization, _database_of(scenario), seconds=seconds)
    return Measurement(
        done.rate, done.p50_ms, done.p99_ms, 0.0, 0.0, done.database_us, done.load_us, 0.0, done.others_cores, 0
    )


def _load(
    cluster: Cluster,
    organizations: Sequence[Organization],
    scenario: Scenario,
    server: Server,
    *,
    name: str,
    seconds: int,
    warm_s: int,
) -> Measurement:
    _send(organizations, scenario, server, name=f"{name}w", seconds=warm_s)
    before = _stored(cluster, scenario)
    measured, answered = _observe(cluster, organizations, scenario, server, name=name, seconds=seconds)
    return _with_lost(measured, scenario, answered - (_stored(cluster, scenario) - before))


def _with_lost(measured: Measurement, scenario: Scenario, lost: int) -> Measurement:
    """Counts acknowledged sales that are not stored, because a fast server that loses sales proves nothing."""
    return replace(measured, errors=measured.errors + max(0, lost)) if scenario.counted else measured


def _database_of(scenario: Scenario) -> str:
    return scenario.database or "bench_" + re.sub(r"\W+", "_", scenario.name.lower())


def _stored(cluster: Cluster, scenario: Scenario) -> int:
    return cluster.count(scenario.counted, _database_of(scenario)) if scenario.counted else 0


def _send(
    organizations: Sequence[Organization], scenario: Scenario, server: Server, *, name: str, seconds: int
) -> wrk.Load:
    keys = [organization.key for organization in organizations[: scenario.keys]]
    return wrk.run(server.url, scenario.load, name=name, keys=keys, connections=scenario.connections, seconds=seconds)


def _observe(
    cluster: Cluster,
    organizations: Sequence[Organization],
    scenario: Scenario,
    server: Server,
    *,
    name: str,
    seconds: int,
) -> tuple[Measurement, int]:
    """The results and the cost of a load, and the number of rows with a success response."""
    before = _cpu(cluster, server)
    load = _send(organizations, scenario, server, name=name, seconds=seconds)
    spent = [after - start for after, start in zip(_cpu(cluster, server), before, strict=True)]
    app_s, jobs_s, database_s, machine_s = spent
    rows = load.requests * scenario.rows_per_request
    if not rows:
        raise RuntimeError(f"{scenario.name} answered nothing in {seconds} s (turn {name}, {load.errors} errors)")
    measured = Measurement(
        rate=load.rate * scenario.rows_per_request,
        p50_ms=load.p50_ms,
        p99_ms=load.p99_ms,
        app_us=(app_s - jobs_s) / rows * 1e6,
        jobs_us=jobs_s / rows * 1e6,
        database_us=database_s / rows * 1e6,
        load_us=load.cpu_s / rows * 1e6,
        memory_mib=memory_mib(server.pid),
        others_cores=(machine_s - app_s - database_s - load.cpu_s) / seconds,
        errors=load.errors,
    )
    return measured, rows - load.errors * scenario.rows_per_request


def _cpu(cluster: Cluster, server: Server) -> tuple[float, float, float, float]:
    return cpu_s(server.pid), jobs_cpu_s(server.pid), cpu_s(cluster.postmaster_pid), machine_cpu_s()


def as_json(measured: Measurement) -> dict[str, float]:
    return asdict(measured)


def _peer_command(scenario: Scenario, port: int) -> list[str]:
    command = [sys.executable, "-m", "uvicorn", "peers.fastapi_app:app", "--app-dir", str(Path(__file__).parent)]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    return [*command, "--host", "127.0.0.1", "--port", str(port), "--workers", str(scenario.workers)]


def _peer_environment(url: str) -> dict[str, str]:
    parts = urllib.parse.urlsplit(url)
    socket_folder = urllib.parse.parse_qs(parts.query)["host"][0]
    return {
        "PEER_DATABASE_URL": f"postgresql+asyncpg://{parts.username}@/{parts.path.lstrip('/')}",
        "PEER_DATABASE_HOST": socket_folder,
        "PEER_POOL_CONNECTIONS": str(PEER_CONNECTIONS),
    }
