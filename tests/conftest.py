import gc
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack

import pytest
import structlog
from hypothesis import HealthCheck, settings
from tests.not_daily import DAILY_EXAMPLES
from tests.support import database

from regulars.kit.process import reduce_garbage_collection

# The tests start a hundred processes; without bytecode files each would compile the whole program.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No deadlines for examples: a busy machine would miss them.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
settings.register_profile("daily", settings.get_profile("any machine"), max_examples=DAILY_EXAMPLES)

pytest_plugins = [
    "tests.support.suite", "tests.support.api", "tests.support.database_fixtures", "tests.support.desks",
    "tests.support.visitor", "tests.support.browser",
]  # fmt: skip

SERVER_VARIABLE = "REGULARS_TEST_DATABASE_URL"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database-url",
        default=os.environ.get(SERVER_VARIABLE),
        help="run against this PostgreSQL (a superuser, any database) instead of the embedded one",
    )


@pytest.hookimpl(trylast=True)  # by then it is known whether everything runs
def pytest_configure(config: pytest.Config) -> None:
    if not config.option.all:
        settings.load_profile("daily")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Looks for no garbage while hundreds of thousands of objects are made that stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Excludes modules and tests, hundreds of thousands of objects, from garbage collection."""
    reduce_garbage_collection()


@pytest.fixture(autouse=True)
def plain_log() -> Iterator[None]:
    """Logs expected failures on one line; the default renders their tracebacks, which takes seconds."""
    structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()])
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def shared_database(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """The URL of a database of the server, and the name of the migrated template.

    Each process of pytest-xdist has a server of its own: a long transaction of one process would hold up the others'
    builds of columns, which wait for older transactions of the whole server.
    """
    with ExitStack() as stack:
        url = request.config.getoption("--database-url")
        url = url or stack.enter_context(database.throwaway_server(database.new_data_folder()))
        yield url, stack.enter_context(database.migrated_template(url))


@pytest.fixture(scope="session")
def server_url(shared_database: tuple[str, str]) -> str:
    return shared_database[0]


@pytest.fixture
def database_url(shared_database: tuple[str, str]) -> Iterator[str]:
    """A new database, migrated and empty."""
    url, template = shared_database
    with database.new_database(url, template=template) as fresh:
        yield fresh


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """A new database without migrations."""
    with database.new_database(server_url) as fresh:
        yield fresh
