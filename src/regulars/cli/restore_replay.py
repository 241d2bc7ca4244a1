"""Repeat, on a restored database, erasures of customers and revocations of API keys that are newer than the backup.

`regulars restore` stores them in the database, with a marker, in the same transaction that restores the backup. The
next command that opens the database carries them out first, and deletes the marker.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID

import psycopg

from regulars.cli import database_pool
from regulars.cli.output import CommandError, ExitCode, format_count, format_time, print_notice
from regulars.kit import log
from regulars.kit.db import Database
from regulars.kit.ids import API_KEY, PROFILE
from regulars.kit.releases import MIGRATIONS
from regulars.kit.settings import Settings
from regulars.privacy.erasure_log import Erasure, merge_erasures, read_log
from regulars.privacy.restore import ReplayReport, end_access, finish_restore

LOCK_TIMEOUT_MS: Final = 60_000
UNCERTAIN_SHOWN_MAX: Final = 100
RESTORE_TABLES: Final = MIGRATIONS / "0096_restores.sql"
# The tables are in the schema of the backup, and pg_restore sets an empty search path, so the schema is set here.
SET_SEARCH_PATH: Final = b"""
SELECT pg_catalog.set_config('search_path', quote_ident(n.nspname), false)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'migrations' AND c.relkind IN ('r', 'p') ORDER BY n.nspname <> 'public' LIMIT 1;
"""
BEGIN_ERASURES: Final = b"""
CREATE TEMPORARY TABLE known_erasures (LIKE erasures_to_replay) ON COMMIT DROP;
COPY known_erasures (organization_id, profile_id, number_hashes, erased_at, is_certain) FROM stdin;
"""
# ON CONFLICT: a backup that was taken while an earlier restore was unfinished contains erasures to replay itself.
BEGIN_KEYS: Final = b"""\\.
INSERT INTO erasures_to_replay SELECT * FROM known_erasures ON CONFLICT DO NOTHING;
CREATE TEMPORARY TABLE known_keys (id uuid, revokes_all boolean) ON COMMIT DROP;
COPY known_keys (id, revokes_all) FROM stdin;
"""
STORE_MARKER: Final = b"""\\.
INSERT INTO restore_marker (restored_at, revoked_keys, revokes_all_keys)
SELECT now(), coalesce(array_agg(id) FILTER (WHERE id IS NOT NULL), '{}'), bool_or(revokes_all) FROM known_keys
ON CONFLICT (only_one) DO UPDATE SET restored_at = excluded.restored_at,
    revoked_keys = restore_marker.revoked_keys || excluded.revoked_keys,
    revokes_all_keys = restore_marker.revokes_all_keys OR excluded.revokes_all_keys;
"""

Result = TypeVar("Result")

_log = log.get(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccessChanges:
    """Erasures of customers and revocations of API keys, to repeat on the restored database."""

    # `is_certain` says that an erasure completed, as far as its log shows.
    erasures: Sequence[Erasure]
    revoked_keys: Sequence[UUID]
    revokes_all_keys: bool


def collect_changes(
    settings: Settings, connection: psycopg.Connection[Any], files: Iterable[Path], *, revokes_all_keys: bool
) -> AccessChanges:
    """Collect the changes from the database that will be replaced, and from the erasure logs of all nodes."""
    own_log = settings.erasure_log_path
    logs = [*([own_log] if own_log.is_file() else []), *files]
    erasures = [*_load_erasures(connection), *(erasure for path in logs for erasure in _read_log(path))]
    revoked = []
    if _has_table(connection, "api_keys"):
        revoked = connection.execute("SELECT id FROM api_keys WHERE revoked_at IS NOT NULL").fetchall()
    return AccessChanges(
        erasures=merge_erasures(erasures), revoked_keys=[row[0] for row in revoked], revokes_all_keys=revokes_all_keys
    )


def make_statements(changes: AccessChanges) -> bytes:
    """Return SQL that stores the changes and the marker, for the end of the transaction that restores the backup."""
    erasures = [
        f"{erasure.organization_id}\t{erasure.profile_id}\t{_format_array(erasure.number_hashes)}"
        f"\t{erasure.erased_at.isoformat()}\t{'t' if erasure.is_certain else 'f'}\n"
        for erasure in changes.erasures
    ]
    keys = [f"{key_id}\tf\n" for key_id in changes.revoked_keys]
    keys.append(f"\\N\t{'t' if changes.revokes_all_keys else 'f'}\n")
    pieces = [SET_SEARCH_PATH, RESTORE_TABLES.read_bytes(), BEGIN_ERASURES, "".join(erasures).encode(), BEGIN_KEYS]
    return b"".join([*pieces, "".join(keys).encode(), STORE_MARKER])


def end_all_access(url: str, changes: AccessChanges) -> int:
    """End sessions and one-time links and revoke keys at once: an older release would ignore the marker."""

    async def work(pool: Database) -> int:
        async with pool.transaction() as tx:
            return await end_access(tx, revoked_keys=changes.revoked_keys, revokes_all_keys=changes.revokes_all_keys)

    return _run(url, work)


def describe_live_keys(connection: psycopg.Connection[Any]) -> list[str]:
    """Describe the API keys that are valid after the restore, one line each."""
    rows = connection.execute(
        "SELECT k.id, o.name, k.name, k.hint, k.last_used_at FROM api_keys k JOIN organizations o"
        " ON o.id = k.organization_id WHERE k.revoked_at IS NULL ORDER BY o.name, k.id"
    ).fetchall()
    return [
        f"{API_KEY.encode(identifier)} of {organization}: {name}, ends in {hint},"
        f" last used {format_time(used) or 'never'}"
        for identifier, organization, name, hint, used in rows
    ]


def finish(url: str) -> None:
    """Finish the restore; `database.finish_restore` calls it if there is a marker."""
    report = _run(url, finish_restore)
    if report is not None:
        _print_report(report)


def _print_report(report: ReplayReport) -> None:
    _log.info("restore.finished", erased_again=report.replayed, uncertain=len(report.uncertain))
    if report.replayed:
        print_notice(f"Erased {format_count(report.replayed, 'customer')} again: the backup is older than the erasure.")
    if report.uncertain:
        print_notice("These erasures were requested, but the log does not show that they completed; they are done now:")
        for name, erasure in report.uncertain[:UNCERTAIN_SHOWN_MAX]:
            at = format_time(erasure.erased_at)
            print_notice(f"  {PROFILE.encode(erasure.profile_id)} of {name}, requested {at} UTC")
        not_shown = len(report.uncertain) - UNCERTAIN_SHOWN_MAX
        if not_shown > 0:
            print_notice(f"  and {not_shown} more")


def _run(url: str, work: Callable[[Database], Awaitable[Result]]) -> Result:
    # No statement timeout and a long lock timeout: another node may do the same work, and the erasure of a customer
    # with many rows takes long.
    return database_pool.run_on_pool(url, work, statement_timeout_ms=0, lock_timeout_ms=LOCK_TIMEOUT_MS)


def _load_erasures(connection: psycopg.Connection[Any]) -> list[Erasure]:
    rows = []
    if _has_table(connection, "erasures"):
        rows += connection.execute(
            "SELECT organization_id, profile_id, number_hashes, erased_at, true FROM erasures"
        ).fetchall()
    if _has_table(connection, "erasures_to_replay"):
        rows += connection.execute(
            "SELECT organization_id, profile_id, number_hashes, erased_at, is_certain FROM erasures_to_replay"
        ).fetchall()
    return [Erasure(row[0], row[1], tuple(row[2]), row[3], row[4]) for row in rows]


def _has_table(connection: psycopg.Connection[Any], name: str) -> bool:
    return connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone() == (True,)


def _read_log(path: Path) -> Sequence[Erasure]:
    try:
        content = read_log(path)
    except OSError as error:
        raise CommandError(f"The erasure log {path} cannot be read: {error.strerror}.", code=ExitCode.USAGE) from None
    if content.damaged_lines:
        numbers = ", ".join(str(number) for number in content.damaged_lines)
        print_notice(f"In {path} these lines cannot be read and were skipped: {numbers}.")
    return content.erasures


def _format_array(hashes: Sequence[bytes]) -> str:
    """Write an array of bytes for COPY: each backslash is doubled for COPY, and doubled again inside an array."""
    return "{" + ",".join(f'"\\\\\\\\x{value.hex()}"' for value in hashes) + "}"
