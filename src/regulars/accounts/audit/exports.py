"""Files that leave: each is in the audit log with the number of its rows, also one that was broken off."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.web.csv import csv_response
from regulars.web.visit import Visit

# The event loop refers to tasks weakly: one without another reference may be collected before it has run.
_recording: set["asyncio.Task[None]"] = set()


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
    """A list as a file. `subject` names what was exported, where the file's name does not."""
    return csv_response(filename, header, _counted(visit, act, subject or filename, rows, after or {}))


async def _counted(
    visit: Visit, act: str, subject: str, rows: AsyncIterator[Sequence[str]], after: Mapping[str, Any]
) -> AsyncIterator[Sequence[str]]:
    """The rows, and a line in the log when the last one has left or the reader has gone."""
    count = 0
    try:
        async for row in rows:
            count += 1
            yield row
    finally:
        # A task of its own: a reader who hangs up cancels whatever is awaited here.
        task = asyncio.create_task(_record(visit, act, subject, {**after, "rows": count}))
        _recording.add(task)
        task.add_done_callback(_recording.discard)
        await asyncio.shield(task)


async def _record(visit: Visit, act: str, subject: str, after: Mapping[str, Any]) -> None:
    async with visit.database.transaction() as tx:
        await record(tx, visit.organization_id, actor_of(visit), act, subject, after=after)
