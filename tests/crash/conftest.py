import random
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

ROUNDS = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption("--crash-rounds", type=int, default=ROUNDS, help="how often each crash test kills (default 3)")
    group.addoption("--crash-seed", type=int, default=None, help="the seed of a run that failed")


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


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    # Without `tests/crash` on the command line this file is read too late for its options.
    return request.config.getoption("--crash-rounds", default=ROUNDS)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    given = request.config.getoption("--crash-seed", default=None)
    return random.SystemRandom().randrange(10**6) if given is None else given
