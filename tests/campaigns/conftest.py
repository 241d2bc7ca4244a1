from pathlib import Path

import pytest
from tests.campaigns.desk import Desk
from tests.support.desks import Opened


@pytest.fixture
def desk(opened: Opened, tmp_path: Path) -> Desk:
    """An organization of its own on a database that tests share, as organizations do."""
    return Desk(*opened, tmp_path / "analysis")
