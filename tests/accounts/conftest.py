import pytest
from tests.support.sign_ins import forget_failed_sign_ins


@pytest.fixture(autouse=True)
def _no_failed_sign_ins(request):
    if "server" in request.fixturenames:
        forget_failed_sign_ins(request.getfixturevalue("api_database_url"))
