"""A pytest plugin: new databases are copies of the slot's migrated template, so that a run migrates none."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.support import database

TEMPLATE_VARIABLE: Final = "REGULARS_MUTANTS_TEMPLATE"


@contextmanager
def template_of_the_slot(_server_url: str) -> Iterator[str]:
    yield os.environ[TEMPLATE_VARIABLE]


def pytest_configure() -> None:
    database.migrated_template = template_of_the_slot
