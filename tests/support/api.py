"""Fixtures for tests that call a running server: one server per test process, one organization per test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
from tests.support import database
from tests.support.client import Api, get_url, new_http
from tests.support.contract import Contract
from tests.support.open_database import OpenDatabase, close_idle, open_database
from tests.support.server import Server, running_server
from tests.support.tenant import Tenant, create_tenant

StartServer = Callable[..., Server]


def pytest_unconfigure() -> None:
    close_idle()


@pytest.fixture(scope="session")
def api_database_url(shared_database: tuple[str, str]) -> Iterator[str]:
    url, template = shared_database
    with database.new_database(url, template=template) as fresh:
        yield fresh


@pytest.fixture(scope="session")
def api_database(api_database_url: str) -> Iterator[OpenDatabase]:
    with open_database(api_database_url) as opened:
        yield opened


@pytest.fixture(scope="session")
def server(api_database_url: str) -> Iterator[Server]:
    with running_server(api_database_url) as running:
        yield running


@pytest.fixture(scope="session")
def second_server(api_database_url: str) -> Iterator[Server]:
    """A server on the same database without the fast path for sales: its responses must be byte-equal."""
    with running_server(api_database_url, options={"has_fast_recorder": False}) as running:
        yield running


@pytest.fixture
def start_server(api_database_url: str) -> Iterator[StartServer]:
    """Starts servers on the shared database that the test may restart or kill."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running_server(api_database_url, **settings))


@pytest.fixture(scope="session")
def contract(server: Server) -> Contract:
    return Contract(get_url(f"{server.url}/v1/openapi.json").json())


@pytest.fixture(scope="session")
def http() -> Iterator[httpx.Client]:
    with new_http() as client:
        yield client


@pytest.fixture
def new_api(server: Server, contract: Contract, http: httpx.Client, api_database: OpenDatabase) -> Callable[[], Api]:
    """Creates callers, each in a new organization."""
    return lambda: Api(server, contract, http, api_database.run(create_tenant))


@pytest.fixture
def api(new_api: Callable[[], Api]) -> Api:
    return new_api()


@pytest.fixture
def other_api(new_api: Callable[[], Api]) -> Api:
    """A caller of another organization."""
    return new_api()


@pytest.fixture
def tenant(api: Api) -> Tenant:
    assert api.tenant is not None
    return api.tenant


@pytest.fixture
def anonymous(api: Api) -> Api:
    """A caller without a key."""
    return api.as_tenant(None)
