import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from tests.support.database import new_database

from regulars.kit import migrate
from regulars.postgres import embedded


@dataclass(frozen=True)
class Durable:
    """A PostgreSQL on disk that syncs, and a migrated database in it."""

    data_dir: Path
    url: str


@pytest.fixture
def durable() -> Iterator[Durable]:
    folder = Path(tempfile.mkdtemp(prefix="regulars-crash-"))
    folder.chmod(0o755)
    data_dir = folder / "data"
    try:
        with new_database(embedded.ensure_running(data_dir)) as url:
            migrate.migrate(url)
            with psycopg.connect(url) as connection:
                for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                    assert connection.execute(f"SHOW {setting}").fetchone() == ("on",)
            yield Durable(data_dir, url)
    finally:
        embedded.release(data_dir)
        shutil.rmtree(folder)
