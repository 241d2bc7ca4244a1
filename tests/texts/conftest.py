import pytest
from tests.support.desks import Opened
from tests.texts.desk import Desk


@pytest.fixture
def desk(desk_database: Opened) -> Desk:
    """An organization of its own on a database that tests share, as organizations do."""
    return Desk(*desk_database)
