import pytest
from tests.columns.fed_shop import FedShop
from tests.segments.desk import Desk
from tests.support.desks import Opened


@pytest.fixture
def desk(opened: Opened) -> Desk:
    """An organization of its own on a database that tests share, as organizations do."""
    return Desk(*opened)


@pytest.fixture
def shop(opened: Opened) -> FedShop:
    """One whose columns are fed and counted by hand."""
    return FedShop(*opened)
