import pytest
from tests.support.database_fixtures import anyio_backend, database, organization_id
from tests.support.sign_ins import forget_failed_sign_ins

__all__ = ["anyio_backend", "database", "organization_id"]


@pytest.fixture(autouse=True)
def _no_failed_sign_ins(request):
    if "server" in request.fixturenames:
        forget_failed_sign_ins(request.getfixturevalue("api_database_url"))
