"""A file lock that allows one `regulars serve` per data folder, and no restore while it runs.

The locked file contains the address of the server, for commands that print links and hints.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from regulars.kit import disk
from regulars.kit.settings import Settings
from regulars.postgres import embedded
from regulars.processes.in_use import InUseError

FILE_NAME: Final = "serve.lock"


class ServeLock:
    """The lock of a data folder; without a descriptor there is no folder."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = descriptor

    def publish_address(self, address: str) -> None:
        """Write the address of this server into the file; an empty one when the server ends."""
        if self._descriptor is not None:
            # The address is only for hints: a full disk must not stop a server.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, address.encode(), 0)


def find_address(data_dir: Path) -> str | None:
    """The address of the server that runs on the data folder; after a kill, that of the last one."""
    try:
        return (data_dir / FILE_NAME).read_text(encoding="utf-8") or None
    except (OSError, UnicodeDecodeError):
        return None


@contextlib.contextmanager
def hold(settings: Settings) -> Iterator[ServeLock]:
    """Hold the lock of the data folder. It is taken before the database is opened: a refused process changes nothing.

    The kernel releases the lock of a killed process, so no stale lock can remain.
    """
    try:
        if settings.is_embedded:
            embedded.prepare_folder(settings.data_dir)
        else:
            settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = disk.open_lock_file(settings.data_dir / FILE_NAME)
    except OSError as error:
        # Only the embedded database needs the folder; with an external database, a read-only container may not have
        # one.
        if settings.is_embedded:
            raise InUseError(
                f"The data folder {settings.data_dir} cannot be written ({error.strerror}); set REGULARS_DATA_DIR."
            ) from None
        yield ServeLock()
        return
    try:
        if not disk.try_lock(descriptor):
            raise InUseError(
                f"Another `regulars serve` already runs on the data folder {settings.data_dir}; stop it, or set"
                " REGULARS_DATA_DIR to another folder."
            )
        lock = ServeLock(descriptor)
        try:
            yield lock
        finally:
            lock.publish_address("")
    finally:
        os.close(descriptor)
