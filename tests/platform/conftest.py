import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.support.database import copy_data_folder, new_data_folder

from regulars.postgres import embedded


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data folder that does not exist yet; whatever runs in it is stopped afterwards."""
    with _data_folder() as folder:
        yield folder


@pytest.fixture
def filled_data_dir(copy_filled_folder: Callable[[Path], None]) -> Iterator[Path]:
    """A data folder with a database that does not run; whatever runs in it is stopped afterwards."""
    with _data_folder() as folder:
        copy_filled_folder(folder)
        yield folder


@pytest.fixture
def running_url(filled_data_dir: Path) -> str:
    """The URL of the database of `filled_data_dir`, which this process has started."""
    return embedded.ensure_running(filled_data_dir, throwaway=True)


@pytest.fixture(scope="session")
def copy_filled_folder() -> Iterator[Callable[[Path], None]]:
    """Copies one database, whose creation takes longer than most tests, to a path."""
    original = new_data_folder()
    embedded.ensure_running(original, throwaway=True)
    embedded.release(original)

    yield partial(copy_data_folder, original)
    shutil.rmtree(original.parent)


@contextmanager
def _data_folder() -> Iterator[Path]:
    folder = new_data_folder()
    yield folder
    if (folder / "start.lock").exists():
        # Processes killed in the test hold no lock any more, so this release is the last.
        (folder / "settings" / "local.conf").unlink(missing_ok=True)
        if (folder / "cluster" / "postmaster.pid").exists():
            embedded.ensure_running(folder, throwaway=True)
        embedded.release(folder)
    shutil.rmtree(folder.parent)
