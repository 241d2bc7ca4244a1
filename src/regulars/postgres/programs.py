"""Choose pg_dump, pg_restore and psql for a server: the bundled ones or, if the server is newer or is reached over TLS,
those installed on the machine."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from regulars.postgres import wheel
from regulars.postgres.errors import EmbeddedDatabaseError, ProgramsError

# Where distributions install several versions side by side; PATH takes precedence.
SYSTEM_FOLDERS: Final = (("/usr/lib/postgresql", "*/bin"), ("/usr", "pgsql-*/bin"))
VERSION_S_MAX: Final = 10
# PostgreSQL's version number divided by this is the major version: 170004 is 17.4.
VERSIONS_PER_MAJOR: Final = 10_000


def find_programs(server_version: int, *, over_tls: bool) -> Path:
    """Return the bin folder of programs that are at least as new as the server, as pg_dump requires. The bundled ones
    are built without TLS."""
    server_major = server_version // VERSIONS_PER_MAJOR
    try:
        bundled = wheel.locate()
    except EmbeddedDatabaseError:
        bundled = None
    if bundled is not None and bundled.major >= server_major and not over_tls:
        return bundled.bin
    for folder in _system_folders():
        if (find_major_version(folder) or 0) >= server_major:
            return folder
    if bundled is None:
        reason = "this release brings no programs"
    elif over_tls:
        reason = "the programs of this release cannot connect over TLS"
    else:
        reason = f"the programs of this release are of version {bundled.major}"
    raise ProgramsError(
        f"The database is PostgreSQL {server_major}, and {reason}; install pg_dump, pg_restore and psql of version"
        f" {server_major} or newer (the package postgresql-client-{server_major} of Debian and Ubuntu, or"
        f" postgresql{server_major} of postgresql.org for Red Hat)."
    )


def _system_folders() -> list[Path]:
    on_path = shutil.which("pg_dump")
    folders = [folder for root, pattern in SYSTEM_FOLDERS for folder in sorted(Path(root).glob(pattern), reverse=True)]
    return [Path(on_path).resolve().parent, *folders] if on_path else folders


def find_major_version(folder: Path) -> int | None:
    """Return the major version of pg_dump, if all three programs are in the folder; else None."""
    if not all((folder / program).exists() for program in ("pg_dump", "pg_restore", "psql")):
        return None
    try:
        output = subprocess.run(  # noqa: S603  # a program of PostgreSQL's, asked for its version
            [folder / "pg_dump", "--version"], check=False, capture_output=True, text=True, timeout=VERSION_S_MAX
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"\) (\d+)", output.stdout)
    return int(version[1]) if version else None
