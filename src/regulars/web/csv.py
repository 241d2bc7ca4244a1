"""Stream CSV downloads; cells that a spreadsheet would run as a formula are escaped."""

import csv
import io
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from starlette.responses import Response

from regulars.kit.text import safe_cell
from regulars.web.download import Download

ROWS_PER_CHUNK: Final = 100
_UNSAFE_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


def csv_response(filename: str, header: Sequence[str], rows: AsyncGenerator[Sequence[str]]) -> Response:
    name = _UNSAFE_IN_NAMES.sub("-", filename)
    return Download(_chunks(header, rows), filename=name, media_type="text/csv; charset=utf-8")


async def _chunks(header: Sequence[str], rows: AsyncGenerator[Sequence[str]]) -> AsyncGenerator[bytes]:
    """Yield the header at once, then the first row, then chunks of rows. So the browser shows the download early, and
    the server notices a disconnected client before it has read many rows."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([safe_cell(name) for name in header])
    yield _drain(buffer)
    buffered_rows, rows_of_chunk = 0, 1
    async with aclosing(rows):
        async for row in rows:
            writer.writerow([safe_cell(cell) for cell in row])
            buffered_rows += 1
            if buffered_rows == rows_of_chunk:
                yield _drain(buffer)
                buffered_rows, rows_of_chunk = 0, ROWS_PER_CHUNK
    if buffered_rows:
        yield _drain(buffer)


def _drain(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode()
