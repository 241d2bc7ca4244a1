from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.crash import world


@dataclass(frozen=True)
class Durable:
    """A PostgreSQL on disk that syncs, and a migrated database in it that no other test uses."""

    data_dir: Path
    url: str


@pytest.fixture(scope="session")
def place() -> Iterator[world.Cluster]:
    """One for all tests that run in this process: making it takes longer than most of them."""
    with world.cluster() as opened:
        yield opened


@pytest.fixture
def durable(place: world.Cluster) -> Durable:
    return Durable(place.data_dir, place.new_database())
