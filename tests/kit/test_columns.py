"""The columns of a batch are listed once, and arrive in the table as the rows had them."""

from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest
from psycopg.errors import NumericValueOutOfRange

from regulars.kit.arrays import Bigints, Booleans, Ids, Jsons, Labels, Texts
from regulars.kit.columns import Columns, names_of

pytestmark = pytest.mark.anyio


class Author(NamedTuple):
    name: str


class Note(NamedTuple):
    id: UUID
    author: Author
    rank: int
    is_open: bool | None
    detail: dict[str, int]


NOTES = [Note(UUID(int=1), Author("Ada"), 3, True, {"b": 1}), Note(UUID(int=2), Author("Bo"), -1, None, {})]
COLUMNS = Columns(
    id=Ids, author=(Labels, "author.name"), rank=Bigints, is_open=Booleans, detail=(Jsons, msgspec.json.encode)
)
INSERT = COLUMNS.write("INSERT INTO notes (organization_id, {columns}) SELECT %(organization_id)s, it.* FROM {rows}")


async def make_table(tx) -> None:
    await tx.execute(
        "CREATE TEMPORARY TABLE notes (organization_id int, id uuid PRIMARY KEY, author text, rank smallint,"
        " is_open boolean, detail jsonb)"
    )


async def test_rows_arrive_as_they_are_and_no_rows_too(database):
    async with database.transaction() as tx:
        await make_table(tx)
        assert await tx.execute(INSERT, {"organization_id": 7, **COLUMNS.of(NOTES)}) == 2
        assert await tx.execute(INSERT, {"organization_id": 7, **COLUMNS.of([])}) == 0
        assert await tx.fetch("SELECT * FROM notes ORDER BY id") == [
            (7, UUID(int=1), "Ada", 3, True, {"b": 1}),
            (7, UUID(int=2), "Bo", -1, None, {}),
        ]


async def test_tuples_come_in_the_order_of_the_columns(database):
    columns = Columns(id=Ids, author=Texts)
    text = columns.write("SELECT place, {columns} FROM {arrays} WITH ORDINALITY AS it ({columns}, place)")
    async with database.reading() as tx:
        rows = await tx.fetch(text, columns.of_tuples([(UUID(int=5), "x"), (UUID(int=4), None)]))
    assert rows == [(1, UUID(int=5), "x"), (2, UUID(int=4), None)]


async def test_columns_of_several_parts_make_one_statement_and_are_assigned_by_name(database):
    rest = Columns(rank=Bigints, is_open=Booleans)
    text = (Columns(id=Ids) | rest).write(
        "UPDATE notes SET {changed} FROM {rows} WHERE notes.id = it.id", changed=rest.assign("it", without={"is_open"})
    )
    async with database.transaction() as tx:
        await make_table(tx)
        await tx.execute(INSERT, {"organization_id": 7, **COLUMNS.of(NOTES)})
        await tx.execute(text, {"id": Ids([UUID(int=1)]), "rank": Bigints([9]), "is_open": Booleans([None])})
        assert await tx.fetch("SELECT rank, is_open FROM notes ORDER BY id") == [(9, True), (-1, None)]


async def test_a_number_too_large_for_its_column_is_refused(database):
    rows = COLUMNS.of([NOTES[0]._replace(rank=40_000)])
    async with database.reading() as tx:
        await make_table(tx)
        with pytest.raises(NumericValueOutOfRange):
            await tx.execute(INSERT, {"organization_id": 7, **rows})


def test_the_columns_of_a_row_are_its_fields():
    assert names_of(Author) == "name"
    assert names_of(Note, "n") == "n.id, n.author, n.rank, n.is_open, n.detail"
