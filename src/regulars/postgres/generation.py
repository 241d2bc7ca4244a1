"""One generation of PostgreSQL's processes at a time on the files of a cluster, whether or not it can be seen.

Process numbers say nothing about another container that has the same volume: there the postmaster that is written down
does not exist, or somebody else has its number. A lock of the kernel does. Every process of a generation inherits the
descriptor that carries it, so it is free exactly when the last one is gone, however they ended.
"""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from regulars.postgres.errors import EmbeddedDatabaseError
from regulars.postgres.folder import SOCKET_NAME, Folder

PROBE_SECONDS_MAX = 1
POLL_SECONDS = 0.05


@contextmanager
def claimed(folder: Folder, *, seconds_max: float) -> Iterator[int]:
    """The descriptor that the new generation has to inherit; the one before has so many seconds to end.

    After `kill -9` of a postmaster its processes end by themselves, when they have finished their statement. Where a
    postmaster still takes connections there is nothing to wait for.
    """
    descriptor = os.open(folder.postmaster_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + seconds_max
        while (is_alive := _takes_connections(folder)) or not _lock(descriptor):
            if is_alive or time.monotonic() > deadline:
                raise EmbeddedDatabaseError(
                    f"The PostgreSQL of the data folder {folder.root} is run from where it cannot be seen, "
                    "such as another container; run the command there, or stop it first."
                )
            time.sleep(POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _takes_connections(folder: Folder) -> bool:
    """A socket in a shared folder reaches its postmaster from any container of the machine."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS_MAX)
        try:
            probe.connect(str(folder.socket / SOCKET_NAME))
        except (BlockingIOError, TimeoutError):
            # Its queue is full, so it has one.
            return True
        except OSError:
            return False
        return True
