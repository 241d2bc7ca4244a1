"""Return a list as a CSV file, and record the export in the audit log with its number of rows, even if interrupted."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.web.csv import csv_response
from regulars.web.visit import Visit


def export_csv(
    visit: Visit,
    act: str,
    filename: str,
    header: Sequence[str],
    rows: AsyncIterator[Sequence[str]],
    *,
    subject: str = "",
    after: Mapping[str, Any] | None = None,
) -> Response:
    """Return a list as a CSV file. For the audit log, `subject` names the list if the file name does not, and `after`
    has values beside the number of rows."""
    return csv_response(filename, header, _count_and_record(visit, act, subject or filename, rows, after or {}))


async def _count_and_record(
    visit: Visit, act: str, subject: str, rows: AsyncIterator[Sequence[str]], after: Mapping[str, Any]
) -> AsyncGenerator[Sequence[str]]:
    """Pass the rows on, and record the export after the last one or when the client disconnects."""
    count = 0
    try:
        async for row in rows:
            count += 1
            yield row
    finally:
        async with visit.database.transaction() as tx:
            await record_act(tx, visit, act, subject, after={**after, "rows": count})
