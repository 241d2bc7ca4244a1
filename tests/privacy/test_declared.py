"""Every column that could hold something about a person is declared by its room, as personal or as not personal."""

import importlib
import pkgutil
from collections import Counter

import pytest
from tests.architecture.test_statements import NO_ROOM, OWNERS

import regulars
from regulars.privacy.personal import MODULES
from regulars.work.personal import PersonalData

pytestmark = pytest.mark.anyio

# What leads to a person, whatever its type.
LINKS = ["profile_id", "phone_number", "number_hash"]
# A column whose values are listed by a constraint holds words of ours.
COLUMNS = """
    SELECT c.relname, a.attname
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind = 'r'
    JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = 'public'
    JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE a.attnum > 0 AND NOT a.attisdropped
      AND (a.attname = ANY (%s) OR t.typname IN ('text', '_text', 'varchar', 'json', 'jsonb', 'bytea', '_bytea'))
      AND NOT EXISTS (
          SELECT 1 FROM pg_constraint AS k
          WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum]
            AND pg_get_constraintdef(k.oid) LIKE '%%= ANY (ARRAY[%%'
      )
"""


def declarations() -> dict[str, PersonalData]:
    """By the name of the room. A short one stands in the model of the room."""
    found = {}
    for package in pkgutil.iter_modules(regulars.__path__, "regulars."):
        modules = {one.name for one in pkgutil.iter_modules([_folder(package.name)])} if package.ispkg else set()
        for name in {"personal", "model", "entries"} & modules:
            data = getattr(importlib.import_module(f"{package.name}.{name}"), "PERSONAL_DATA", None)
            if data is not None:
                found[package.name.removeprefix("regulars.")] = data
    return found


def _folder(package: str) -> str:
    return str(importlib.import_module(package).__path__[0])


async def columns_of(database) -> set[str]:
    async with database.reading() as tx:
        return {f"{table}.{column}" for table, column in await tx.fetch(COLUMNS, (LINKS,))}


async def test_every_column_is_declared_once_by_the_room_that_owns_it(database):
    schema = await columns_of(database)
    declared: Counter[str] = Counter()
    for room, data in declarations().items():
        whole = {table for table in data.not_personal if "." not in table}
        names = [*data.columns, *(name for name in data.not_personal if "." in name)]
        names += [column for column in schema if column.partition(".")[0] in whole]
        assert {name.partition(".")[0] for name in names} | whole <= OWNERS[room]
        assert all(data.not_personal.values())
        declared.update(names)
    assert {column for column in schema if column.partition(".")[0] not in NO_ROOM} - set(declared) == set()
    assert [name for name, times in declared.items() if times > 1 or name not in schema] == []


def test_an_erasure_and_an_export_walk_every_room_with_something_personal():
    personal = {room: data for room, data in declarations().items() if data.columns or data.erase or data.exports}
    assert personal == dict(MODULES)
    # What has columns and no way to erase them is done by the room that reads stored answers, by that of each fact, or
    # for messages by the inbox, in one order of locks; from columns by compaction, after the fact.
    assert {room for room, data in MODULES.items() if data.erase is None} == {
        "columns",
        "experiments",
        "idempotency",
        "links",
        "texts",
        "work",
    }
