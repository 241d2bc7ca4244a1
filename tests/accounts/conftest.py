import pytest
from tests.accounts.browser import Browser
from tests.accounts.people import Staff
from tests.support.sign_ins import forget_failed_sign_ins


@pytest.fixture(autouse=True)
def _no_failed_sign_ins(request):
    if "server" in request.fixturenames:
        forget_failed_sign_ins(request.getfixturevalue("api_database_url"))


@pytest.fixture
def staff(server, api_database_url, tenant):
    return Staff(api_database_url, tenant.organization_id)


@pytest.fixture
def browser(server):
    return Browser(server.url)
