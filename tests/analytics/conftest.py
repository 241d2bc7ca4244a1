from collections.abc import Callable

import httpx
import pytest
from tests.analytics.pages_shop import Shop, open_shop
from tests.columns.fed_shop import FedShop
from tests.support.analysis import analysis
from tests.support.client import Api
from tests.support.contract import Contract
from tests.support.desks import Opened
from tests.support.open_database import OpenDatabase
from tests.support.server import Server
from tests.support.tenant import create_tenant
from tests.support.visitor import Visitor, sign_in_now

from regulars.web.access import Role

__all__ = ["analysis"]


@pytest.fixture(scope="module")
def read_shop(
    server: Server, contract: Contract, http: httpx.Client, api_database: OpenDatabase, api_database_url: str
) -> Shop:
    """A shop that tests of a module read and none changes."""
    return open_shop(Api(server, contract, http, api_database.run(create_tenant)), api_database_url)


@pytest.fixture(scope="module")
def reader_as(read_shop: Shop, http: httpx.Client) -> Callable[[Role], Visitor]:
    """Signs users in to that shop."""
    api = read_shop.api
    assert api.tenant is not None
    organization_id = api.tenant.organization_id
    return lambda role: Visitor(http, api.server.url, sign_in_now(read_shop.database_url, organization_id, role))


@pytest.fixture
def shop(opened: Opened) -> FedShop:
    """One whose columns are fed and counted by hand."""
    return FedShop(*opened)
