"""Fixtures for tests that call use cases directly on a real database."""

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from regulars.http.request import Request
from regulars.kit.db import Database
from regulars.organizations.model import ApiCaller

# Longer than in production, so that a test of a race decides when a lock is released.
LOCK_TIMEOUT_MS = 10_000
SECRET = bytes(range(32))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def database_url(columns_database_url: str) -> str:
    """For folders that import it: the database without servers, which tests share. Each has an organization of its own."""
    return columns_database_url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url, lock_timeout_ms=LOCK_TIMEOUT_MS)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def organization_id() -> UUID:
    return uuid4()


def request(
    organization_id: UUID,
    *,
    body: bytes = b"",
    references: tuple[str, ...] = (),
    query: dict[str, str] | None = None,
    default_country: str | None = None,
) -> Request:
    """A request as the framework passes it to a route."""
    caller = ApiCaller(organization_id, UUID(int=1), SECRET, default_country)
    return Request(caller=caller, request_id="req_test", references=references, query=query or {}, body=body)
