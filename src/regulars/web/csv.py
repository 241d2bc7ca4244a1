"""CSV downloads: streamed, and with no cell that a spreadsheet would run as a formula."""

import csv
import io
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from starlette.responses import Response, StreamingResponse

from regulars.kit.text import safe_cell
from regulars.web.static import NO_STORE, SECURITY_HEADERS

ROWS_PER_CHUNK: Final = 200
_UNSAFE_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


def csv_response(filename: str, header: Sequence[str], rows: AsyncIterator[Sequence[str]]) -> Response:
    """Rows are streamed: an export of any length takes the memory of one chunk."""
    name = _UNSAFE_IN_NAMES.sub("-", filename)
    headers = {
        **SECURITY_HEADERS,
        "Cache-Control": NO_STORE,
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return StreamingResponse(_chunks(header, rows), media_type="text/csv; charset=utf-8", headers=headers)


async def _chunks(header: Sequence[str], rows: AsyncIterator[Sequence[str]]) -> AsyncIterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(header)
    buffered_rows = 0
    async for row in rows:
        writer.writerow([safe_cell(cell) for cell in row])
        buffered_rows += 1
        if buffered_rows == ROWS_PER_CHUNK:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
            buffered_rows = 0
    yield buffer.getvalue()
