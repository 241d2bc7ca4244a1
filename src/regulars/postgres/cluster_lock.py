"""A lock that allows only one set of PostgreSQL processes on a data folder, across containers too.

A process id has no meaning in another container with the same volume: there the postmaster of the pid file does not
exist, or another process has its id. A file lock of the kernel works across containers. All processes of one PostgreSQL
inherit the locked file descriptor, so the lock is released when the last of them has ended, for whatever reason.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from regulars.kit.disk import open_lock_file, try_lock
from regulars.postgres.errors import EmbeddedDatabaseError
from regulars.postgres.folder import SOCKET_NAME, Folder

PROBE_SECONDS_MAX = 1
POLL_SECONDS = 0.05


@contextmanager
def hold_cluster_lock(folder: Folder, *, seconds_max: float) -> Iterator[int]:
    """Yield the locked descriptor, which a new PostgreSQL has to inherit. Wait up to `seconds_max` for an earlier
    PostgreSQL to end.

    After `kill -9` of a postmaster its processes end when they have finished their statement. If a postmaster still
    accepts connections, the lock is refused at once.
    """
    descriptor = open_lock_file(folder.postmaster_lock)
    try:
        deadline = time.monotonic() + seconds_max
        while (is_alive := _accepts_connections(folder)) or not try_lock(descriptor):
            if is_alive or time.monotonic() > deadline:
                raise EmbeddedDatabaseError(
                    f"The PostgreSQL of the data folder {folder.root} is run from where it cannot be seen, "
                    "such as another container; run the command there, or stop it first."
                )
            time.sleep(POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def _accepts_connections(folder: Folder) -> bool:
    """Return whether a postmaster accepts connections: its socket in the shared folder works from any container of the
    machine."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS_MAX)
        try:
            probe.connect(str(folder.socket / SOCKET_NAME))
        except (BlockingIOError, TimeoutError):
            # The backlog of the socket is full, so a postmaster listens.
            return True
        except OSError:
            return False
        return True
