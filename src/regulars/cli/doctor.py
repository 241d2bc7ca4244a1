"""`regulars doctor`: find problems of the installation and say how to fix them; `--recount` rebuilds derived totals."""

import asyncio
import dataclasses
import platform
import shutil
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import typer

from regulars.accounts.audit.log import OPERATOR, record
from regulars.catalog.counts.counting import count_every_key
from regulars.catalog.model import Catalog
from regulars.cli import database
from regulars.cli.output import CommandError, ExitCode, format_count, out, print_json
from regulars.cli.runner import AsJson, run_on_pool
from regulars.columns import lifecycle
from regulars.consent import figures
from regulars.kit import cluster, db_checks, horizon, migrate, releases, vault
from regulars.kit.db import KEY_READS_MAX, RECORDING_MAX, URGENT_READS_MAX, Database, Tx
from regulars.kit.db_checks import FIX, Pooling, find_pooling
from regulars.kit.migrate import MigrationError
from regulars.kit.releases import OutdatedReleaseError, ProcessRole
from regulars.kit.settings import Settings, SettingsError, load
from regulars.kit.writable import IS_READ_ONLY
from regulars.organizations import manage
from regulars.postgres.errors import EmbeddedDatabaseError
from regulars.privacy.erasure_log import ErasureLog
from regulars.sales.totals import fill

DISK_FREE_BYTES_MIN: Final = 1024**3
# The database's clock decides how old a sale is: with a wrong clock, sales are refused or automations do not start.
CLOCK_DIFFERENCE_S_MAX: Final = 5.0
# Nodes of a cluster use their own clocks for the age of sales and the order of consents.
NODE_CLOCK_DIFFERENCE_S_MAX: Final = 0.5
# The connections of one server process in addition to its pool: those for recording and for reads by key, and one for
# notifications. The worker, the analysis process and the lock count as one more server process; together they use less.
CONNECTIONS_BESIDE_POOL: Final = RECORDING_MAX + KEY_READS_MAX + URGENT_READS_MAX + 1
# A recount waits while a worker counts sales of the organization, which takes as long as a batch.
RECOUNT_TRIES_MAX: Final = 40
RECOUNT_RETRY_S: Final = 0.25


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check; `advice` says how to fix a problem."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def doctor(
    as_json: AsJson = False,
    recount: Annotated[
        bool, typer.Option("--recount", help="Rebuild derived totals from the stored rows, without checking.")
    ] = False,
) -> None:
    if recount:
        _recount(as_json=as_json)
        return
    findings = list(_run_checks())
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        for finding in findings:
            out.print(_format_status(finding), end="")
            out.print(f"{finding.name}: {finding.found}", markup=False)
            if finding.advice:
                out.print(f"      {finding.advice}", markup=False)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(ExitCode.FAILED)


def _finding(name: str, ok: bool, found: str, *, fix: str) -> Finding:
    return Finding(name=name, ok=ok, found=found, advice="" if ok else fix)


def _format_status(finding: Finding) -> str:
    if not finding.ok:
        return "[red]bad [/red]"
    return "[yellow]warn [/yellow]" if finding.advice else "[green]ok  [/green]"


def _run_checks() -> Iterator[Finding]:
    yield Finding(name="python", ok=sys.version_info >= (3, 11), found=platform.python_version())
    try:
        settings = load()
    except SettingsError as error:
        yield Finding(name="settings", ok=False, found=str(error), advice="`docs/configuration.md` lists them all.")
        return
    yield Finding(name="settings", ok=True, found=f"{len(settings.sources)} set, the others at their defaults.")
    yield _check_short_links(settings)
    yield _check_disk(settings)
    try:
        with database.opened(settings, allows_any_pooler=True) as url:
            yield from _check_database(settings, url)
    except (CommandError, EmbeddedDatabaseError, psycopg.Error) as error:
        advice = (
            "Read the log files in the data folder."
            if settings.is_embedded
            else "Check DATABASE_URL, that the server runs, and that it allows this machine to connect."
        )
        yield Finding(name="database", ok=False, found=str(error), advice=advice)


def _check_proxy(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    """Warn if a proxy is not configured. Regulars does not speak TLS, so a public https address means a proxy."""
    address = settings.public_url or _find_stored_address(connection) or ""
    is_unconfigured = address.startswith("https://") and not settings.trusted_proxies
    advice = (
        "Name it in REGULARS_TRUSTED_PROXIES: until then all visitors share one address, and 50 wrong passwords in 15"
        " minutes block everyone who has not signed in from there before."
    )
    return Finding(
        name="proxy",
        ok=True,
        found="A proxy is in front and not configured."
        if is_unconfigured
        else "Client addresses are read as configured.",
        advice=advice if is_unconfigured else "",
    )


def _find_stored_address(connection: psycopg.Connection[Any]) -> str | None:
    if connection.execute("SELECT to_regclass('public_address') IS NOT NULL").fetchone() != (True,):
        return None
    row = connection.execute("SELECT url FROM public_address").fetchone()
    return row[0] if row else None


def _check_short_links(settings: Settings) -> Finding:
    """Warn if the host of short links has no address. Only warn: DNS may answer differently to customers' phones."""
    host = urlsplit(settings.link_url or "").hostname
    if host is None:
        return Finding(name="short links", ok=True, found="Not set up: links in texts stay as they are written.")
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        advice = "Make it lead to this server, or unset REGULARS_LINK_URL: until then links in texts lead nowhere."
        return Finding(name="short links", ok=True, found=f"{host} has no address here.", advice=advice)
    return Finding(name="short links", ok=True, found=f"Links in texts lead to {host}.")


def _check_disk(settings: Settings) -> Finding:
    existing = settings.data_dir
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    found = f"{free / 1024**3:.1f} GiB free under {settings.data_dir}."
    return _finding("disk", free >= DISK_FREE_BYTES_MIN, found, fix="Free some space: PostgreSQL stops on a full disk.")


def _check_database(settings: Settings, url: str) -> Iterator[Finding]:
    with database.connected(url) as connection:
        version = connection.info.parameter_status("server_version") or "unknown"
        where = "embedded" if settings.is_embedded else "external"
        yield Finding(name="database", ok=True, found=f"PostgreSQL {version}, {where}.")
        for check in DATABASE_CHECKS:
            yield check(settings, connection)
        if connection.execute(cluster.IS_CLUSTER).fetchone() == (True,):
            yield from _check_cluster(connection)
    yield _check_migrations(settings, url)


def _check_durability(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    unsafe = db_checks.unsafe_settings(connection)
    found = f"Acknowledged writes can be lost: {', '.join(unsafe)}." if unsafe else "Acknowledged writes survive."
    fix = "Turn these PostgreSQL settings on; the server refuses to start until then."
    return _finding("durability", not unsafe, found, fix=fix)


def _check_writes(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    is_writable = connection.execute(IS_READ_ONLY).fetchone() == (False,)
    found = "The database accepts writes." if is_writable else "The database is read-only."
    fix = "Promote it, or point DATABASE_URL at the primary; the server recovers by itself."
    return _finding("writes", is_writable, found, fix=fix)


def _check_pooler(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    pooling = Pooling.NONE if settings.database_url is None else find_pooling(connection, settings.database_url)
    found = f"A pooler is in front of PostgreSQL and assigns connections by {pooling}."
    if pooling is Pooling.NONE:
        found = "Connections reach PostgreSQL directly."
    is_safe = pooling is not Pooling.TRANSACTION
    return _finding("pooler", is_safe, found, fix=f"Sessions get lost, nothing starts: {FIX}.")


def _check_change_lists(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    problem = horizon.find_problem(connection)
    found = problem or "The start of every transaction is visible."
    return _finding("lists of changes", problem is None, found, fix=f"`updated_from` is refused: {horizon.FIX}")


def _check_encoding(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    encoding = str(connection.info.parameter_status("server_encoding"))
    fix = "Create the database again with ENCODING 'UTF8'."
    return _finding("encoding", encoding == "UTF8", f"The database stores {encoding}.", fix=fix)


def _check_rights(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    row = connection.execute(
        "SELECT current_user, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
    ).fetchone()
    user, allowed = row or ("unknown", False)
    found = f"{user} may {'' if allowed else 'not '}create tables."
    fix = f"GRANT CREATE ON SCHEMA public TO {user}, or make it the owner."
    return _finding("rights", bool(allowed), found, fix=fix)


def _check_clock(_settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    before = time.time()
    row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    middle = (before + time.time()) / 2
    difference = abs(float(row[0]) - middle) if row else float("inf")
    found = f"The clocks of the database and of this machine differ by {difference:.1f} s."
    return _finding(
        "clock", difference <= CLOCK_DIFFERENCE_S_MAX, found, fix="Run a time service (NTP) on both machines."
    )


def _check_connections(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    row = connection.execute("SHOW max_connections").fetchone()
    allowed = int(row[0]) if row else 0
    needed = (settings.workers + 1) * (settings.database_pool_max + CONNECTIONS_BESIDE_POOL)
    found = f"This machine uses up to {needed} of {allowed} connections."
    fix = "Lower REGULARS_DATABASE_POOL_MAX or raise max_connections."
    return _finding("connections", needed <= allowed, found, fix=fix)


def _check_secret_key(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    has_table = connection.execute("SELECT to_regclass('vault_key') IS NOT NULL").fetchone() == (True,)
    fingerprint = vault.read_fingerprint(connection) if has_table else None
    is_file = settings.secret_key is None and settings.is_embedded
    try:
        own_fingerprint = vault.of(vault.with_key(settings, may_create_key=False)).fingerprint
    except vault.VaultError as error:
        return Finding(name="secret key", ok=False, found=str(error))
    if fingerprint is None and own_fingerprint is None:
        where = "`regulars serve` creates one." if is_file else "Set REGULARS_SECRET_KEY before secrets are stored."
        return Finding(name="secret key", ok=True, found=f"None yet. {where}")
    found = f"The key here is {own_fingerprint or 'missing'}, the database's is {fingerprint or 'not stored yet'}."
    fix = "Start with the key that the secrets were encrypted with; no other key opens them."
    return _finding("secret key", fingerprint in {None, own_fingerprint}, found, fix=fix)


def _check_organization_secrets(settings: Settings, connection: psycopg.Connection[Any]) -> Finding:
    """Warn about unencrypted secrets. Everything works with them, but a stolen backup reveals what they protect."""
    try:
        [(plain, total)] = connection.execute(
            "SELECT count(to_jsonb(o) ->> 'secret'), count(*) FROM organizations AS o"
        ).fetchall()
    except psycopg.errors.UndefinedTable:
        plain, total = 0, 0
    has_key = settings.is_embedded or settings.secret_key is not None
    step = "Run `regulars vault seal`" if has_key else "Set REGULARS_SECRET_KEY and run `regulars vault seal`"
    return Finding(
        name="organization secrets",
        ok=True,
        found=f"{total - plain} of {total} organizations have an encrypted secret.",
        advice=f"{step}: until then a stolen backup reveals erased and opted-out numbers." if plain else "",
    )


def _check_erasure_log(settings: Settings, _connection: psycopg.Connection[Any]) -> Finding:
    path = settings.erasure_log_path
    ok = ErasureLog(path).is_writable()
    fix = "Set REGULARS_ERASURE_LOG to a writable file; until then erasures are refused."
    return _finding("erasure log", ok, f"{path} is {'' if ok else 'not '}writable.", fix=fix)


DATABASE_CHECKS: Final[tuple[Callable[[Settings, psycopg.Connection[Any]], Finding], ...]] = (
    _check_proxy,
    _check_durability,
    _check_writes,
    _check_pooler,
    _check_change_lists,
    _check_encoding,
    _check_rights,
    _check_clock,
    _check_connections,
    _check_secret_key,
    _check_organization_secrets,
    _check_erasure_log,
)


def _check_cluster(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    nodes = cluster.find_nodes(connection)
    unreachable = [node.name for node in nodes if not node.is_reachable]
    found = f"No response from {', '.join(unreachable)}." if unreachable else f"All {len(nodes)} nodes respond."
    yield _finding(
        "cluster nodes", not unreachable, found, fix="Start them: their organizations are down, the others are not."
    )
    versions = {node.versions for node in nodes if node.is_reachable}
    found = f"PostgreSQL and Citus are {' and '.join(sorted(versions)) or 'unknown'}."
    yield _finding("cluster versions", len(versions) <= 1, found, fix="Upgrade every node to the same versions.")
    difference = max((node.clock_off_s for node in nodes), default=0.0)
    found = f"The clocks of the nodes differ from the coordinator's by up to {difference:.1f} s."
    fix = "Run a time service (NTP) on every node."
    yield _finding("cluster clocks", difference <= NODE_CLOCK_DIFFERENCE_S_MAX, found, fix=fix)
    local = cluster.find_undistributed_tables(connection)
    found = f"Not distributed: {', '.join(local)}." if local else "Every table of organizations is distributed."
    fix = "Distribute them by organization_id; until then only the coordinator stores them."
    yield _finding("cluster tables", not local, found, fix=fix)


def _check_migrations(settings: Settings, url: str) -> Finding:
    try:
        with database.connected(url) as connection:
            releases.refuse_outdated(connection, ProcessRole.SERVER, ProcessRole.WORKER)
        missing = migrate.pending(url)
    except (MigrationError, OutdatedReleaseError, psycopg.Error) as error:
        return Finding(name="migrations", ok=False, found=str(error))
    found = f"Missing: {', '.join(missing)}." if missing else "The schema is up to date."
    fix = "`regulars serve` applies them." if settings.is_embedded else "Run `regulars migrate`."
    return _finding("migrations", not missing, found, fix=fix)


def _recount(*, as_json: bool) -> None:
    """Mark all derived data as due; the worker rebuilds it in batches while servers keep running.

    It is needed after a worker of an older release ran, which could not update derived data that is newer than itself.
    """
    count = run_on_pool(lambda pool, _settings: _recount_all(pool))
    if as_json:
        print_json({"organizations": count, "recounted": list(DERIVED)})
        return
    names = ", ".join(DERIVED)
    out.print(
        f"The worker recounts {format_count(count, 'organization')}: {names}. Pages say up to when sales are counted.",
        markup=False,
    )


async def _recount_all(pool: Database) -> int:
    async with pool.connection() as connection:
        organizations = await manage.list_organizations(connection)
    for organization in organizations:
        for name, mark_as_due in DERIVED.items():
            await _retry_mark_as_due(pool, organization.id, name, mark_as_due)
        async with pool.transaction() as tx:
            await record(tx, organization.id, OPERATOR, "organization.recount", organization.name)
    return len(organizations)


async def _retry_mark_as_due(
    pool: Database, organization_id: UUID, name: str, mark_as_due: Callable[[Tx, UUID], Awaitable[object]]
) -> None:
    for _ in range(RECOUNT_TRIES_MAX):
        try:
            async with pool.transaction() as tx:
                await mark_as_due(tx, organization_id)
                return
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            await asyncio.sleep(RECOUNT_RETRY_S)
    raise CommandError(f"The {name} are locked all the time; try again when the worker has less to do.")


async def _recount_catalogs(tx: Tx, organization_id: UUID) -> None:
    for catalog in Catalog:
        await count_every_key(tx, organization_id, catalog)


DERIVED: Final[dict[str, Callable[[Tx, UUID], Awaitable[object]]]] = {
    "totals of sales": fill.recount,
    "catalog keys and values": _recount_catalogs,
    "consent figures": figures.request_recount,
    "columns of segments": lifecycle.rebuild,
}
