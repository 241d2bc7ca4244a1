"""Compute how much of the machine's memory the embedded PostgreSQL uses as its page cache."""

import os
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1 << 20
# One eighth of the memory. The system's page cache and our own processes need the remaining memory.
BUFFERS_DIVISOR: Final = 8
BUFFERS_BYTES_MIN: Final = 128 * MEBIBYTE
BUFFERS_BYTES_MAX: Final = 1024 * MEBIBYTE
# The memory limit of a container: cgroup v2, then cgroup v1.
CGROUP_LIMIT_FILES: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def shared_buffers(memory_bytes: int) -> str:
    """Return the value of the setting `shared_buffers` for a machine with this much memory."""
    return f"{min(max(memory_bytes // BUFFERS_DIVISOR, BUFFERS_BYTES_MIN), BUFFERS_BYTES_MAX) // MEBIBYTE}MB"


def available_bytes(limits: tuple[Path, ...] = CGROUP_LIMIT_FILES) -> int:
    """Return the memory of the machine, or of the container if that is less."""
    machine_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine_bytes, *(limit for path in limits if (limit := _read_limit(path)) is not None)])


def _read_limit(path: Path) -> int | None:
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() else None
