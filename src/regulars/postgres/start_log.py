"""Find out why PostgreSQL did not start, from its error output and its daily log file."""

import re
from pathlib import Path

from regulars.postgres.folder import Folder

TAIL_BYTES_MAX = 20_000
LINE = re.compile(r"\[(?P<pid>\d+)\] (?P<level>[A-Z]+): +(?P<text>.*)")
# The beginnings of lines that every start logs.
ROUTINE = ("starting PostgreSQL", "redirecting log output", "listening on", "database system")


def path(folder: Folder) -> Path:
    return folder.logs / "start.log"


def delete(folder: Folder) -> None:
    path(folder).unlink(missing_ok=True)


def find_reason(folder: Folder) -> str:
    """Return the errors of the failed process on one line."""
    start_lines = _read_lines(path(folder))
    pids = {line["pid"] for line in start_lines}
    daily = max(folder.logs.glob("postgresql-*.log"), key=lambda log: log.stat().st_mtime, default=None)
    daily_lines = [line for line in (_read_lines(daily) if daily else []) if line["pid"] in pids]
    errors = [line["text"] for line in (*start_lines, *daily_lines) if not line["text"].startswith(ROUTINE)]
    return "; ".join(errors) or f"see {path(folder)}"


def _read_lines(log: Path) -> list[re.Match[str]]:
    try:
        text = log.read_text(errors="replace")[-TAIL_BYTES_MAX:]
    except OSError:
        return []
    return list(LINE.finditer(text))
