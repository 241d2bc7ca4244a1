"""Write the settings files of the embedded PostgreSQL; at every start, so that the settings of a new release apply."""

import os
from pathlib import Path

from regulars.postgres import memory
from regulars.postgres.account import Account
from regulars.postgres.folder import Folder

MAIN_FILE = "postgresql.conf"
HBA_FILE = "pg_hba.conf"
IDENT_FILE = "pg_ident.conf"
# The operator's own file is read last; it is created if missing, and never overwritten.
LOCAL_FILE = "local.conf"

SETTINGS = {
    # No network access: the socket is in a folder that only its owner may enter.
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    # Enough for eight server processes with default settings, and a worker.
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    # For a steady stream of inserts: rare, spread checkpoints and small full-page images.
    "max_wal_size": "4GB",
    "min_wal_size": "256MB",
    "checkpoint_timeout": "15min",
    "checkpoint_completion_target": "0.9",
    "wal_compression": "pglz",
    # A week of logs: one file per weekday, truncated when the weekday returns.
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_truncate_on_rotation": "on",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    # Statements and their parameters contain personal data, so errors are logged without them.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length_on_error": "0",
    "log_parameter_max_length": "0",
    # Acknowledged writes depend on these; the server does not start without them.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}
# For tests: small. Durability stays as in production, because tests have their files in memory, where fsync is free.
# Compression stays off: each new database needs checkpoints, after which every changed page is written as a whole.
THROWAWAY_SETTINGS = {
    "max_wal_size": "1GB",
    "min_wal_size": "80MB",
    "shared_buffers": "64MB",
    "wal_compression": "off",
}


def write(folder: Folder, account: Account, *, superuser: str, throwaway: bool) -> None:
    paths = {
        "data_directory": str(folder.cluster),
        "hba_file": str(folder.settings / HBA_FILE),
        "ident_file": str(folder.settings / IDENT_FILE),
        "unix_socket_directories": _as_list_item(folder.socket),
        "log_directory": str(folder.logs),
    }
    buffers = {"shared_buffers": memory.shared_buffers(memory.available_bytes())}
    settings = {**SETTINGS, **paths, **buffers, **(THROWAWAY_SETTINGS if throwaway else {})}
    lines = [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    lines.append(f"include_if_exists = {_quoted(LOCAL_FILE)}")
    _write_file(folder.settings / MAIN_FILE, "\n".join(lines))
    if not (folder.settings / LOCAL_FILE).exists():
        _write_file(folder.settings / LOCAL_FILE, "# Settings in this file come last and stay as they are.")
    # Only the account that runs the cluster, and root when root started it, become its superuser.
    _write_file(folder.settings / HBA_FILE, "local all all peer map=owner")
    names = {account.name, "root"} if account.is_dedicated else {account.name}
    _write_file(folder.settings / IDENT_FILE, "\n".join(f'owner "{name}" "{superuser}"' for name in sorted(names)))


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _as_list_item(path: Path) -> str:
    return '"' + str(path).replace('"', '""') + '"'


def _write_file(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(f"{text}\n")
    temporary.chmod(0o644 if os.geteuid() == 0 else 0o600)
    temporary.replace(path)
