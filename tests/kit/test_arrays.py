"""The arrays built by hand arrive in PostgreSQL as what they were, and as what the driver itself would have sent."""

import random
from datetime import UTC, datetime
from uuid import UUID

import pytest

from regulars.kit.arrays import (
    Bigints,
    Blobs,
    Booleans,
    Ids,
    Jsonbs,
    Jsons,
    JsonTexts,
    Labels,
    Texts,
    Timestamps,
    Uuids,
    encode_timestamp,
    read_bigint,
    read_timestamp,
    read_uuids,
)

pytestmark = pytest.mark.anyio

MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(2000, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]


def _uuids(values):
    return Uuids([None if value is None else value.bytes for value in values])


VALUES = {
    "texts": ("text", Texts, ["", "a", "é😀", 'quote " \\ {,} NULL', "NULL", "x" * 100_000]),
    "labels": ("text", Labels, ["", "a", None, "é😀", "a", "NULL", None, "a"]),
    "blobs": ("bytea", Blobs, [b"", b"\x00\xff", bytes(range(256)), b"\xff\xff\xff\xff"]),
    "uuids": ("uuid", _uuids, [UUID(int=0), None, UUID(int=2**128 - 1)]),
    "ids": ("uuid", Ids, [UUID(int=0), None, UUID(int=2**128 - 1)]),
    "booleans": ("boolean", Booleans, [True, None, False]),
    "bigints": ("bigint", Bigints, [0, -1, None, 2**63 - 1, -(2**63)]),
    "timestamps": ("timestamptz", Timestamps, MOMENTS),
}
NULLABLE = {"labels", "uuids", "ids", "booleans", "bigints"}
NULLS = [[None], [None, None, None]]


async def compare(database, name, kind, values) -> None:
    async with database.reading() as tx:
        [(ours, theirs, same)] = await tx.fetch(
            f"SELECT o, t, o IS NOT DISTINCT FROM t FROM (SELECT %s AS o, %s::{name}[] AS t) AS a",  # type: ignore[arg-type]  # noqa: S608  # the name of a type, from the table above
            (kind(values), values),
        )
    assert ours == theirs == values
    assert same or not values


@pytest.mark.parametrize("case", VALUES)
async def test_an_array_arrives_as_the_driver_would_have_sent_it(database, case):
    name, kind, values = VALUES[case]
    await compare(database, name, kind, values)
    await compare(database, name, kind, [])
    for value in values:
        await compare(database, name, kind, [value])
    for nulls in NULLS if case in NULLABLE else ():
        await compare(database, name, kind, nulls)


async def test_what_postgresql_sends_in_binary_is_read_back(database):
    ids = [UUID(int=0), None, UUID(int=2**128 - 1), None]
    async with database.reading() as tx:
        cursor = tx.connection.cursor(binary=True)
        await cursor.execute("SELECT %s::uuid[], '{}'::uuid[], %s::bigint, %s", (ids, -(2**63), Bigints([-1])))
        result = cursor.pgresult
        assert read_uuids(result.get_value(0, 0)) == [None if one is None else one.bytes for one in ids]
        assert read_uuids(result.get_value(0, 1)) == []
        without_null = [UUID(int=1), UUID(int=2**127), UUID(int=0)]
        await cursor.execute("SELECT %s::uuid[]", (without_null,))
        assert read_uuids(cursor.pgresult.get_value(0, 0)) == [one.bytes for one in without_null]
        assert read_bigint(result.get_value(0, 2)) == -(2**63)
        for moment in MOMENTS:
            await cursor.execute("SELECT %s::timestamptz", (moment,))
            assert read_timestamp(cursor.pgresult.get_value(0, 0)) == moment
            assert encode_timestamp(moment) == cursor.pgresult.get_value(0, 0)


async def test_an_empty_array_unnests_to_nothing_and_all_columns_keep_step(database):
    async with database.reading() as tx:
        assert await tx.fetch("SELECT * FROM unnest(%s, %s)", (Texts([]), Bigints([]))) == []
        rows = await tx.fetch(
            "SELECT * FROM unnest(%s, %s, %s) WITH ORDINALITY",
            (Labels(["a", None, "c"]), Uuids([None, UUID(int=7).bytes, None]), Bigints([None, 2, 3])),
        )
    assert rows == [("a", None, None, 1), (None, UUID(int=7), 2, 2), ("c", None, 3, 3)]


async def test_json_is_stored_to_the_letter(database):
    documents = [b'{"b": 1.50,  "a":[1e5,"\xc3\xa9\\u00e9"]}', None, b"null", b"[]"]
    async with database.reading() as tx:
        rows = await tx.fetch("SELECT j::text FROM unnest(%s) AS j", (Jsons(documents),))
        texts = [None if document is None else document.decode() for document in documents]
        assert [row[0] for row in rows] == texts
        assert await tx.fetch("SELECT j::text FROM unnest(%s) AS j", (JsonTexts(texts),)) == rows
        apart = await tx.fetch(
            "SELECT j, k::jsonb FROM unnest(%s, %s) AS it (j, k)", (Jsonbs(documents), Jsons(documents))
        )
        assert [row[0] for row in apart] == [row[1] for row in apart]


async def test_random_arrays_survive(database):
    chance = random.Random(7)
    for _ in range(20):
        size = chance.randrange(1, 300)
        numbers = [chance.choice([None, chance.randrange(-(2**63), 2**63)]) for _ in range(size)]
        texts = [chance.randbytes(chance.randrange(20)).hex() for _ in range(size)]
        labels = [chance.choice([None, "a", "b"]) for _ in range(size)]
        async with database.reading() as tx:
            [row] = await tx.fetch("SELECT %s, %s, %s", (Bigints(numbers), Texts(texts), Labels(labels)))
        assert row == (numbers, texts, labels)
