"""The plans of the recording statement. They are made once for each connection, perhaps while a table was empty."""

import re
from typing import Any

import psycopg
import pytest

from regulars.kit import connecting
from regulars.kit.connection import Prepared
from regulars.kit.db import Database
from regulars.sales import statements

pytestmark = pytest.mark.anyio

FORMS = [statements.RECORD, statements.RECORD_TOGETHER, statements.RECORD_ALL]
PLACE = re.compile(r"\$(\d+)")
# Of an index that is searched: what by, if anything.
SEARCHED = re.compile(r"Index (?:Only )?Scan (?:on|using) .*\n(?:\s+Index Cond: (.*))?")
SOME = """
INSERT INTO idempotency_keys (organization_id, key, fingerprint, status, body, created_at)
SELECT gen_random_uuid(), 'k' || n, '', 201, convert_to(repeat('x', 500), 'UTF8'), now() FROM generate_series(1, %(rows)s) n;
INSERT INTO profiles (organization_id, id, external_id, created_at, updated_at)
SELECT gen_random_uuid(), gen_random_uuid(), 'c' || n, now(), now() FROM generate_series(1, %(rows)s) n;
INSERT INTO interests (organization_id, topic, needed_by)
SELECT gen_random_uuid(), 'profiles.changed', 'test' FROM generate_series(1, %(rows)s) n;
"""


async def plan(connection: "psycopg.AsyncConnection[Any]", form: Prepared) -> str:
    places = max(int(place) for place in PLACE.findall(form.text))
    await connection.execute("DEALLOCATE ALL")
    await connection.execute(f"PREPARE asked AS {form.text}".encode())
    rows = await connection.execute(f"EXPLAIN EXECUTE asked ({', '.join(['NULL'] * places)})".encode())
    return "\n".join([row[0] for row in await rows.fetchall()])


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name.decode())
@pytest.mark.parametrize("rows", [0, 5, 100, 300])
async def test_everything_is_found_by_its_key_however_little_there_is(database: Database, form, rows):
    async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
        await connection.execute(connecting.FOR_RECORDING)
        for statement in SOME.replace("%(rows)s", str(rows)).split(";")[:-1]:
            await connection.execute(statement.encode())
        await connection.execute("ANALYZE idempotency_keys, profiles, interests, sales_events, outbox")
        text = await plan(connection, form)
    assert "hashed SubPlan" not in text, text
    assert "Seq Scan on" not in text, text
    searched = SEARCHED.findall(text)
    assert len(searched) >= 2, text
    assert [by for by in searched if "organization_id" not in by] == [], text
