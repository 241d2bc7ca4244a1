"""The share of the machine's memory for the page cache of the embedded PostgreSQL."""

import os
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1 << 20
# One eighth of the memory. The system's page cache and our own processes need the remaining memory.
DIVISOR: Final = 8
BUFFERS_BYTES_MIN: Final = 128 * MEBIBYTE
BUFFERS_BYTES_MAX: Final = 1024 * MEBIBYTE
# The memory limit of a container: cgroup v2, then cgroup v1.
LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def shared_buffers(memory_bytes: int) -> str:
    """The value of `shared_buffers` for a machine with this much memory."""
    return f"{min(max(memory_bytes // DIVISOR, BUFFERS_BYTES_MIN), BUFFERS_BYTES_MAX) // MEBIBYTE}MB"


def available_bytes(limits: tuple[Path, ...] = LIMITS) -> int:
    """The memory of the machine, or of the container if that is less."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(limit for path in limits if (limit := _read(path)) is not None)])


def _read(path: Path) -> int | None:
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() else None
