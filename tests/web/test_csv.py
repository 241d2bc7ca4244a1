import asyncio

import pytest
from tests.web.drain import drained

from regulars.kit.text import safe_cell
from regulars.web.csv import ROWS_PER_CHUNK, csv_response


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t1", "\r1", "−=", "+33 6 39"])
def test_a_cell_that_could_be_a_formula_is_quoted(cell):
    expected = cell if cell.startswith("−") else f"'{cell}"
    assert safe_cell(cell) == expected


@pytest.mark.parametrize("cell", ["+33639984107", "-19.90", "-5", "12", "Zoé", "", "C-100", "a=b"])
def test_numbers_in_international_form_and_plain_numbers_stay_as_they_are(cell):
    assert safe_cell(cell) == cell


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("Zoé;=1+1", "Zoé;'=1+1"),
        ("a;+1;-1;@x", "a;'+1;'-1;'@x"),
        ('x; "=1', "x; \"'=1"),
        ("\t=1", "'\t'=1"),
        ("two\n=lines", "two\n'=lines"),
        ("a;b=c; d", "a;b=c; d"),
    ],
)
def test_no_formula_begins_behind_a_semicolon_or_a_line_break(cell, safe):
    assert safe_cell(cell) == safe


async def rows(count):
    for number in range(count):
        yield [f"C-{number}", "=1"]


@pytest.mark.anyio
async def test_it_streams_its_header_and_then_every_row_in_chunks():
    # A column may be named by a property of products, and a property by a caller.
    response = csv_response("customers of today.csv", ["id", "note;=1"], rows(ROWS_PER_CHUNK * 2 + 1))
    chunks = await drained(response)
    assert len(chunks) == 4
    assert chunks[:2] == ["id,note;'=1\r\n", "C-0,'=1\r\n"]
    lines = "".join(chunks).splitlines()
    assert len(lines) == ROWS_PER_CHUNK * 2 + 2
    assert response.headers["content-disposition"] == 'attachment; filename="customers-of-today.csv"'
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.anyio
async def test_an_empty_list_still_has_its_header():
    assert await drained(csv_response("x.csv", ["id"], rows(0))) == ["id\r\n"]


@pytest.mark.anyio
async def test_a_client_that_disconnects_ends_the_file_after_the_rows_that_are_being_read():
    reading, gone, done, sent = asyncio.Event(), asyncio.Event(), [], []

    async def read_slowly():
        try:
            async for row in rows(ROWS_PER_CHUNK * 3):
                if row[0] == "C-0":
                    reading.set()
                    await gone.wait()
                    # The server learns of it while the statement still runs.
                    for _ in range(20):
                        await asyncio.sleep(0)
                done.append(row)
                yield row
        finally:
            done.append("ended")

    async def receive():
        await reading.wait()
        gone.set()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message.get("body"))

    await csv_response("x.csv", ["id", "note"], read_slowly())({"type": "http"}, receive, send)
    assert (done, sent) == ([["C-0", "=1"], "ended"], [None, b"id,note\r\n"])
