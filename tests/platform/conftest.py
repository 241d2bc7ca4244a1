import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.database import new_data_folder

from regulars.postgres import embedded


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data folder that does not exist yet; whatever runs in it is stopped afterwards."""
    folder = new_data_folder()
    yield folder
    if (folder / "start.lock").exists():
        # Processes killed in the test hold no lock any more, so this release is the last.
        (folder / "settings" / "local.conf").unlink(missing_ok=True)
        if (folder / "cluster" / "postmaster.pid").exists():
            embedded.ensure_running(folder, throwaway=True)
        embedded.release(folder)
    shutil.rmtree(folder.parent)
