from collections.abc import Iterator

import pytest
import structlog
from tests.support.room import anyio_backend, database, organization_id

__all__ = ["anyio_backend", "database", "organization_id"]


@pytest.fixture(autouse=True)
def plain_log() -> Iterator[None]:
    """Failures on purpose are logged in one plain line; the default draws their tracebacks for seconds."""
    structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])
    yield
    structlog.reset_defaults()
