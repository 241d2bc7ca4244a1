from typing import Any

import pytest
from tests.support import samples
from tests.support.client import Api


@pytest.fixture
def store(api: Api) -> dict[str, Any]:
    """A store of the caller's, ready for sales."""
    stored: dict[str, Any] = api.post("/v1/stores", samples.store()).json()
    return stored
