from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Api
from tests.support.server import Server, running_server


@pytest.fixture
def store(api: Api) -> dict[str, Any]:
    """A store of the caller's, ready for sales."""
    stored: dict[str, Any] = api.post("/v1/stores", samples.store()).json()
    return stored


@pytest.fixture(scope="session")
def laneless_server(api_database_url: str) -> Iterator[Server]:
    """The same service without the lane."""
    with running_server(api_database_url, options={"has_fast_protocol": False}) as running:
        yield running


@pytest.fixture(params=["on the lane", "off the lane"])
def either_server(request: pytest.FixtureRequest, server: Server) -> Server:
    """What holds for a connection holds on the lane and off it."""
    if request.param == "on the lane":
        return server
    without: Server = request.getfixturevalue("laneless_server")
    return without
