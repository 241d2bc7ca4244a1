"""Sync files and folders to disk, so that they survive a power cut, and lock files against other processes.

A caller syncs a file before it renames it to the final name.
"""

import fcntl
import os
import time
from pathlib import Path

LOCK_POLL_SECONDS = 0.02


def sync_tree(folder: Path) -> None:
    """Sync the folder and all files and folders in it."""
    for parent, _folders, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                sync(path)
        sync(Path(parent))


def sync(path: Path) -> None:
    """Sync one file or folder. Syncing a folder makes its entries durable, but not the content of the files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_lock_file(path: Path) -> int:
    """Open a file for `try_lock`; the lock is released when the descriptor is closed or the process has ended."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int) -> bool:
    """Lock the file exclusively, unless another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_within(descriptor: int, seconds: float) -> bool:
    """Lock the file exclusively once no other process has it locked; False if that takes longer."""
    deadline = time.monotonic() + seconds
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOCK_POLL_SECONDS)
    return True
