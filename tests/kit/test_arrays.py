"""The arrays built by hand arrive in PostgreSQL as what they were, and as what the driver itself would have sent."""

import random
from datetime import UTC, datetime
from uuid import UUID

import pytest

from regulars.kit.arrays import Bigints, Blobs, Jsons, Texts, Timestamps, Uuids

pytestmark = pytest.mark.anyio

VALUES = {
    "text": (Texts, ["", "a", "é😀", 'quote " \\ {,} NULL', None, "NULL", "x" * 100_000]),
    "bytea": (Blobs, [b"", b"\x00\xff", None, bytes(range(256)), b"\xff\xff\xff\xff"]),
    "uuid": (Uuids, [UUID(int=0), None, UUID(int=2**128 - 1)]),
    "bigint": (Bigints, [0, -1, None, 2**63 - 1, -(2**63)]),
    "timestamptz": (
        Timestamps,
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
            datetime(2000, 1, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ],
    ),
}
EMPTY_OR_NULL = [[], [None], [None, None, None]]


async def compare(database, name, kind, values) -> None:
    async with database.reading() as tx:
        [(ours, theirs, same)] = await tx.fetch(
            f"SELECT o, t, o IS NOT DISTINCT FROM t FROM (SELECT %s AS o, %s::{name}[] AS t) AS a",  # type: ignore[arg-type]  # noqa: S608  # the name of a type, from the table above
            (kind(values), values),
        )
    assert ours == theirs == values
    assert same or not values


@pytest.mark.parametrize("name", VALUES)
async def test_an_array_arrives_as_the_driver_would_have_sent_it(database, name):
    kind, values = VALUES[name]
    await compare(database, name, kind, values)
    for value in values:
        await compare(database, name, kind, [value])
    if kind is not Timestamps:
        for other in EMPTY_OR_NULL:
            await compare(database, name, kind, other)


async def test_an_empty_array_unnests_to_nothing_and_all_columns_keep_step(database):
    async with database.reading() as tx:
        assert await tx.fetch("SELECT * FROM unnest(%s, %s)", (Texts([]), Bigints([]))) == []
        rows = await tx.fetch(
            "SELECT * FROM unnest(%s, %s, %s) WITH ORDINALITY",
            (Texts(["a", None, "c"]), Uuids([None, UUID(int=7), None]), Bigints([None, 2, 3])),
        )
    assert rows == [("a", None, None, 1), (None, UUID(int=7), 2, 2), ("c", None, 3, 3)]


async def test_json_is_kept_to_the_letter(database):
    documents = [b'{"b": 1.50,  "a":[1e5,"\xc3\xa9\\u00e9"]}', None, b"null", b"[]"]
    async with database.reading() as tx:
        rows = await tx.fetch("SELECT j::text FROM unnest(%s) AS j", (Jsons(documents),))
    assert [row[0] for row in rows] == [None if document is None else document.decode() for document in documents]


async def test_random_arrays_survive(database):
    chance = random.Random(7)
    for _ in range(20):
        size = chance.randrange(1, 300)
        numbers = [chance.choice([None, chance.randrange(-(2**63), 2**63)]) for _ in range(size)]
        texts = [chance.choice([None, chance.randbytes(chance.randrange(20)).hex()]) for _ in range(size)]
        async with database.reading() as tx:
            [(back, words)] = await tx.fetch("SELECT %s, %s", (Bigints(numbers), Texts(texts)))
        assert (back, words) == (numbers, texts)
