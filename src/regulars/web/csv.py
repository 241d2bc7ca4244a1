"""A list as a file: what the page shows, streamed, and no cell that a spreadsheet would run as a formula."""

import csv
import io
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from starlette.responses import Response, StreamingResponse

from regulars.kit.text import safe_cell
from regulars.web.static import NOT_KEPT, SECURITY_HEADERS

ROWS_PER_CHUNK: Final = 200
_UNSAFE_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


def csv_response(filename: str, header: Sequence[str], rows: AsyncIterator[Sequence[str]]) -> Response:
    """Rows leave as they come: an export of any length takes the memory of one chunk."""
    name = _UNSAFE_IN_NAMES.sub("-", filename)
    headers = {
        **SECURITY_HEADERS,
        "Cache-Control": NOT_KEPT,
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return StreamingResponse(_chunks(header, rows), media_type="text/csv; charset=utf-8", headers=headers)


async def _chunks(header: Sequence[str], rows: AsyncIterator[Sequence[str]]) -> AsyncIterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(header)
    waiting = 0
    async for row in rows:
        writer.writerow([safe_cell(cell) for cell in row])
        waiting += 1
        if waiting == ROWS_PER_CHUNK:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
            waiting = 0
    yield buffer.getvalue()
