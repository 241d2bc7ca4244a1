"""The plans of the recording statement. They are made once for each connection, perhaps while a table was empty."""

import re
from itertools import product
from typing import Any

import psycopg
import pytest

from regulars.kit import db_session
from regulars.kit.db import Database
from regulars.sales import statements

pytestmark = pytest.mark.anyio

FORMS = [
    (source, (*customers, *keys, *ends))
    for source, customers, keys, ends in product(
        (statements.ONE_SALE, statements.SALES, statements.SALES_OF_SEVERAL),
        ((statements.KNOWN_CUSTOMERS,), statements.NEW_PROFILES),
        ((), (statements.STORE_RESPONSES,), (statements.UNUSED_KEYS, statements.STORE_RESPONSES)),
        ((), (statements.SKIP_STORED,)),
    )
]
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


async def plan(
    connection: "psycopg.AsyncConnection[Any]", source: statements.Source, parts: tuple[statements.Part, ...]
) -> str:
    statement = statements.compose(source, parts)
    places = len(statement.names)
    await connection.execute("DEALLOCATE ALL", prepare=False)
    await connection.execute(f"PREPARE asked AS {statement.prepared.text}".encode(), prepare=False)
    rows = await connection.execute(f"EXPLAIN EXECUTE asked ({', '.join(['NULL'] * places)})".encode(), prepare=False)
    return "\n".join([row[0] for row in await rows.fetchall()])


@pytest.mark.parametrize("rows", [0, 5, 100, 300])
async def test_everything_is_found_by_its_key_however_little_there_is(database: Database, rows):
    async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
        await connection.execute(db_session.FOR_RECORDING)
        for statement in SOME.replace("%(rows)s", str(rows)).split(";")[:-1]:
            await connection.execute(statement.encode())
        await connection.execute("ANALYZE idempotency_keys, profiles, interests, sales_events, outbox")
        texts = [await plan(connection, *form) for form in FORMS]
    for (_, parts), text in zip(FORMS, texts, strict=True):
        assert "hashed SubPlan" not in text, text
        assert "Seq Scan on" not in text, text
        searched = SEARCHED.findall(text)
        # The customer; whether a key is taken; whether new profiles interest a listener.
        looking_up = {statements.UNUSED_KEYS, *statements.NEW_PROFILES[1:]}.intersection(parts)
        assert len(searched) >= 1 + len(looking_up), text
        assert [by for by in searched if "organization_id" not in by] == [], text
