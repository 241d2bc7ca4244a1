"""A file lock that allows one `regulars serve` per data folder, and no restore while it runs."""

import contextlib
import os
from collections.abc import Iterator

from regulars.kit import disk
from regulars.kit.settings import Settings
from regulars.postgres import embedded
from regulars.processes.in_use import InUseError


@contextlib.contextmanager
def hold(settings: Settings) -> Iterator[None]:
    """Hold the lock of the data folder. It is taken before the database is opened: a refused process changes nothing.

    The kernel releases the lock of a killed process, so no stale lock can remain.
    """
    try:
        if settings.is_embedded:
            embedded.prepare_folder(settings.data_dir)
        else:
            settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = disk.open_lock_file(settings.data_dir / "serve.lock")
    except OSError as error:
        # Only the embedded database needs the folder; with an external database, a read-only container may not have
        # one.
        if settings.is_embedded:
            raise InUseError(
                f"The data folder {settings.data_dir} cannot be written ({error.strerror}); set REGULARS_DATA_DIR."
            ) from None
        yield
        return
    try:
        if not disk.try_lock(descriptor):
            raise InUseError(
                f"Another `regulars serve` already runs on the data folder {settings.data_dir}; stop it, or set"
                " REGULARS_DATA_DIR to another folder."
            )
        yield
    finally:
        os.close(descriptor)
