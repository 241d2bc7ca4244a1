import pytest
from tests.attribution.desk import Desk
from tests.support.desks import Opened


@pytest.fixture
def desk(opened: Opened) -> Desk:
    """An organization of its own on a database that tests share, as organizations do."""
    return Desk(*opened)
