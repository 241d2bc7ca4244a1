from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.crash import world


@dataclass(frozen=True)
class Durable:
    """A durable PostgreSQL on disk, and a migrated database of this test in it."""

    data_dir: Path
    url: str


@pytest.fixture(scope="session")
def place() -> Iterator[world.Cluster]:
    """One cluster per test process, because its creation takes longer than most tests."""
    with world.cluster() as opened:
        yield opened


@pytest.fixture
def durable(place: world.Cluster) -> Durable:
    return Durable(place.data_dir, place.new_database())
