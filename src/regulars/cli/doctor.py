"""`regulars doctor`: is everything in order, and if not, what to do."""

import dataclasses
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final

import psycopg
import typer

from regulars.cli import database, recounting
from regulars.cli.output import CommandError, Exit, out, print_json
from regulars.kit import cluster, db_checks, migrate, releases, vault
from regulars.kit.db import LOOKING_UP_MAX, RECORDING_MAX, URGENT_MAX
from regulars.kit.db_checks import FIX, Pooling, find_pooling
from regulars.kit.migrate import MigrationError
from regulars.kit.releases import OutdatedReleaseError, Role
from regulars.kit.settings import Settings, SettingsError, load
from regulars.kit.writable import IS_READ_ONLY
from regulars.postgres.errors import EmbeddedDatabaseError
from regulars.privacy.erasure_log import ErasureLog

DISK_FREE_BYTES_MIN: Final = 1024**3
# A sale's age is judged by the database's clock, so a wrong one refuses sales or skips automations.
CLOCK_DIFFERENCE_S_MAX: Final = 5.0
# Nodes of a cluster judge the age of sales, and order consents, by their own clocks.
NODE_CLOCK_DIFFERENCE_S_MAX: Final = 0.5
# Connections of one server process beyond its pool: those that record and look up, and the wake-up. The worker, the
# process that counts and the lock together have fewer beyond the worker's pool.
CONNECTIONS_BESIDE_POOL: Final = RECORDING_MAX + LOOKING_UP_MAX + URGENT_MAX + 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found; advice is there when something is to be done."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON for programs.")] = False,
    recount: Annotated[
        bool, typer.Option("--recount", help="Instead of checking, rebuild derived totals from the stored rows.")
    ] = False,
) -> None:
    if recount:
        recounting.recount(as_json=as_json)
        return
    findings = list(_examine())
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            out.print(_mark(finding), end="")
            out.print(f"{finding.name}: {finding.found}", markup=False)
            if finding.advice:
                out.print(f"      {finding.advice}", markup=False)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(Exit.FAILED)


def _mark(finding: Finding) -> str:
    if not finding.ok:
        return "[red]bad [/red]"
    return "[yellow]warn [/yellow]" if finding.advice else "[green]ok  [/green]"


def _examine() -> Iterator[Finding]:
    yield Finding(name="python", ok=sys.version_info >= (3, 11), found=platform.python_version())
    try:
        settings = load()
    except SettingsError as error:
        yield Finding(name="settings", ok=False, found=str(error), advice="`docs/configuration.md` lists them all.")
        return
    yield Finding(name="settings", ok=True, found=f"{len(settings.sources)} set, the others at their defaults.")
    yield _proxy(settings)
    yield _disk(settings)
    try:
        with database.opened(settings, by_any_pooler=True) as url:
            yield from _examine_database(settings, url)
    except (CommandError, EmbeddedDatabaseError, psycopg.Error) as error:
        advice = (
            "Look at the log files in the data folder."
            if settings.is_embedded
            else "Check DATABASE_URL and that the server runs and lets this machine in."
        )
        yield Finding(name="database", ok=False, found=str(error), advice=advice)


def _proxy(settings: Settings) -> Finding:
    """Regulars speaks no TLS itself, so a public https address means that a proxy stands in front of it."""
    is_unnamed = (settings.public_url or "").startswith("https://") and not settings.trusted_proxies
    return Finding(
        name="proxy",
        ok=True,
        found="A proxy stands in front and is not named." if is_unnamed else "Client addresses are believed as set.",
        advice="Name it in REGULARS_TRUSTED_PROXIES: until then all visitors share one address, and 50 wrong passwords"
        " in 15 minutes stop all who never signed in from there."
        if is_unnamed
        else "",
    )


def _disk(settings: Settings) -> Finding:
    existing = settings.data_dir
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    return Finding(
        name="disk",
        ok=free >= DISK_FREE_BYTES_MIN,
        found=f"{free / 1024**3:.1f} GiB free under {settings.data_dir}.",
        advice="" if free >= DISK_FREE_BYTES_MIN else "Free some space: PostgreSQL stops when the disk is full.",
    )


def _examine_database(settings: Settings, url: str) -> Iterator[Finding]:
    with database.connected(url) as connection:
        version = connection.info.parameter_status("server_version") or "unknown"
        where = "embedded" if settings.is_embedded else "external"
        yield Finding(name="database", ok=True, found=f"PostgreSQL {version}, {where}.")
        for check in CHECKS:
            yield check(settings, connection)
        if connection.execute(cluster.IS_CLUSTER).fetchone() == (True,):
            yield from _examine_cluster(connection)
    yield _migrations(settings, url)


def _durable(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    losing = db_checks.losing_settings(connection)
    return Finding(
        name="durability",
        ok=not losing,
        found=f"Acknowledged writes can be lost: {', '.join(losing)}." if losing else "Acknowledged writes survive.",
        advice="Turn these PostgreSQL settings on; the server refuses to start until then." if losing else "",
    )


def _writable(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    read_only = connection.execute(IS_READ_ONLY).fetchone() != (False,)
    return Finding(
        name="writes",
        ok=not read_only,
        found="The database is read-only." if read_only else "The database takes writes.",
        advice="Promote it, or point DATABASE_URL at the primary; the server goes on by itself." if read_only else "",
    )


def _pooler(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    found = Pooling.NONE
    if settings.database_url is not None:
        found = find_pooling(connection, settings.database_url)
    ok = found is not Pooling.TRANSACTION
    sentence = f"A pooler stands before PostgreSQL and lends connections by {found}."
    return Finding(
        name="pooler",
        ok=ok,
        found="Connections reach PostgreSQL itself." if found is Pooling.NONE else sentence,
        advice="" if ok else f"Sessions get lost, and nothing starts: {FIX}.",
    )


def _encoding(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    encoding = str(connection.info.parameter_status("server_encoding"))
    return Finding(
        name="encoding",
        ok=encoding == "UTF8",
        found=f"The database stores {encoding}.",
        advice="" if encoding == "UTF8" else "Create the database again with ENCODING 'UTF8'.",
    )


def _rights(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    row = connection.execute(
        "SELECT current_user, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
    ).fetchone()
    user, allowed = row or ("nobody", False)
    return Finding(
        name="rights",
        ok=bool(allowed),
        found=f"{user} may {'' if allowed else 'not '}create tables.",
        advice="" if allowed else f"GRANT CREATE ON SCHEMA public TO {user}, or make it the database's owner.",
    )


def _clock(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    before = time.time()
    row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    middle = (before + time.time()) / 2
    difference = abs(float(row[0]) - middle) if row else float("inf")
    ok = difference <= CLOCK_DIFFERENCE_S_MAX
    return Finding(
        name="clock",
        ok=ok,
        found=f"The database's clock is {difference:.1f} s from this machine's.",
        advice="" if ok else "Run a time service (NTP) on both machines.",
    )


def _connections(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    row = connection.execute("SHOW max_connections").fetchone()
    allowed = int(row[0]) if row else 0
    needed = (settings.workers + 1) * (settings.database_pool_max + CONNECTIONS_BESIDE_POOL)
    return Finding(
        name="connections",
        ok=needed <= allowed,
        found=f"Up to {needed} of {allowed} connections are used from here.",
        advice="" if needed <= allowed else "Lower REGULARS_DATABASE_POOL_MAX or raise max_connections.",
    )


def _secret_key(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    known = connection.execute("SELECT to_regclass('vault_key') IS NOT NULL").fetchone() == (True,)
    fingerprint = vault.known_fingerprint(connection) if known else None
    is_file = settings.secret_key is None and settings.is_embedded
    try:
        own = vault.of(vault.with_key(settings, may_make=False)).fingerprint
    except vault.VaultError as error:
        return Finding(name="secret key", ok=False, found=str(error))
    if fingerprint is None and own is None:
        where = "`regulars serve` makes one." if is_file else "Set REGULARS_SECRET_KEY before secrets are stored."
        return Finding(name="secret key", ok=True, found=f"None yet. {where}")
    ok = fingerprint in {None, own}
    return Finding(
        name="secret key",
        ok=ok,
        found=f"The key here is {own or 'missing'}, the database's is {fingerprint or 'not noted yet'}.",
        advice="" if ok else "Start with the key the secrets were sealed with; without it they cannot be opened.",
    )


def _organization_secrets(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    """A warning only: everything works with plain secrets, but a backup exposes what they protect."""
    try:
        [(plain, total)] = connection.execute(
            "SELECT count(to_jsonb(o) ->> 'secret'), count(*) FROM organizations AS o"
        ).fetchall()
    except psycopg.errors.UndefinedTable:
        plain, total = 0, 0
    found = f"{total - plain} of {total} organizations have their secret sealed."
    if not plain:
        return Finding(name="organization secrets", ok=True, found=found)
    has_key = settings.is_embedded or settings.secret_key is not None
    step = "Run `regulars vault seal`" if has_key else "Set REGULARS_SECRET_KEY and run `regulars vault seal`"
    advice = f"{step}: until then a stolen backup reveals which numbers were erased or withdrew."
    return Finding(name="organization secrets", ok=True, found=found, advice=advice)


def _erasure_log(settings: Settings, _connection: psycopg.Connection[Any]) -> Finding:
    path = settings.erasure_log_path
    ok = ErasureLog(path).is_writable()
    return Finding(
        name="erasure log",
        ok=ok,
        found=f"{path} can {'' if ok else 'not '}be written.",
        advice="" if ok else "Set REGULARS_ERASURE_LOG to a file that can be written; until then erasures are refused.",
    )


CHECKS: Final[tuple[Callable[[Settings, psycopg.Connection[Any]], Finding], ...]] = (
    _durable,
    _writable,
    _pooler,
    _encoding,
    _rights,
    _clock,
    _connections,
    _secret_key,
    _organization_secrets,
    _erasure_log,
)


def _examine_cluster(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    nodes = cluster.find_nodes(connection)
    silent = [node.name for node in nodes if not node.answers]
    yield Finding(
        name="cluster nodes",
        ok=not silent,
        found=f"No answer from {', '.join(silent)}." if silent else f"All {len(nodes)} nodes answer.",
        advice="Their organizations stand still until they are back; the others go on." if silent else "",
    )
    versions = {node.versions for node in nodes if node.answers}
    yield Finding(
        name="cluster versions",
        ok=len(versions) <= 1,
        found=f"PostgreSQL and Citus are {' and '.join(sorted(versions)) or 'unknown'}.",
        advice="" if len(versions) <= 1 else "Upgrade every node to the same versions.",
    )
    off = max((node.clock_off_s for node in nodes), default=0.0)
    ok = off <= NODE_CLOCK_DIFFERENCE_S_MAX
    yield Finding(
        name="cluster clocks",
        ok=ok,
        found=f"The clocks of the nodes are up to {off:.1f} s from the coordinator's.",
        advice="" if ok else "Run a time service (NTP) on every node.",
    )
    local = cluster.find_local_tables(connection)
    yield Finding(
        name="cluster tables",
        ok=not local,
        found=f"Not distributed: {', '.join(local)}." if local else "Every table of organizations is distributed.",
        advice="Distribute them by organization_id; until then they fill the coordinator alone." if local else "",
    )


def _migrations(settings: Settings, url: str) -> Finding:
    try:
        with database.connected(url) as connection:
            releases.refuse_outdated(connection, Role.SERVER, Role.WORKER)
        missing = migrate.pending(url)
    except (MigrationError, OutdatedReleaseError, psycopg.Error) as error:
        return Finding(name="migrations", ok=False, found=str(error))
    advice = "`regulars serve` applies them." if settings.is_embedded else "Run `regulars migrate`."
    return Finding(
        name="migrations",
        ok=not missing,
        found=f"Missing: {', '.join(missing)}." if missing else "The schema is up to date.",
        advice=advice if missing else "",
    )
