import pytest
from tests.attribution.desk import Desk
from tests.attribution.results_shop import ResultsShop, open_results
from tests.support.desks import Opened


@pytest.fixture
def desk(opened: Opened) -> Desk:
    """An organization of its own on a database that tests share, as organizations do."""
    return Desk(*opened)


@pytest.fixture
def shop(api, api_database_url) -> ResultsShop:
    return open_results(api, api_database_url)
