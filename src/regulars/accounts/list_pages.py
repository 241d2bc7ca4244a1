"""The page and the file of a list. The page has one part of the rows, from the cursor in the URL; the file has all rows
with the same filters, and the audit log records it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.kit.db import Tx
from regulars.lists.columns import Columns
from regulars.lists.sources import Source, read_all_rows
from regulars.web.access import Action
from regulars.web.listing import ListPage, ListView, read_page
from regulars.web.render import redirect, render
from regulars.web.route import Harm, Page
from regulars.web.visit import Visit

# Rows that a file reads at a time.
EXPORT_ROWS: Final = 200

Row = TypeVar("Row")
Values = Mapping[str, Any]


async def _no_values(_tx: Tx, _rows: Sequence[Any]) -> Values:
    return {}


@dataclass(frozen=True, slots=True)
class OpenedList(Generic[Row]):
    """A list with the filters of a URL. The template also gets `values`, and what `load` finds for the rows of the
    page."""

    view: ListView
    source: Source[Row]
    values: Values = field(default_factory=dict)
    load: Callable[[Tx, Sequence[Row]], Awaitable[Values]] = _no_values
    # Finds the URL of what a search names in full; then the page has no rows, and leads there.
    find_exactly: Callable[[Tx], Awaitable[str | None]] | None = None
    # What the file and the audit log name, if not the whole list.
    subject: str = ""


@dataclass(frozen=True, slots=True)
class ListPages(Generic[Row]):
    """`act` names an export in the audit log; the name of the file may have `{subject}` and `{organization}`."""

    template: str
    columns: Columns[Row]
    open: Callable[[Tx, Visit], Awaitable[OpenedList[Row]]]
    act: str = field(kw_only=True)
    file_name: str = field(kw_only=True)
    rows_at_once: int = field(default=EXPORT_ROWS, kw_only=True)

    async def show(self, visit: Visit) -> Response:
        page: ListPage[Row] = ListPage(())
        found_url = None
        async with visit.database.reading() as tx:
            opened = await self.open(tx, visit)
            if opened.find_exactly is None:
                page = await read_page(opened.view, opened.source, lambda: nullcontext(tx))
            else:
                found_url = await opened.find_exactly(tx)
            # An htmx request cannot be redirected, so the page links to what was found.
            if found_url is not None and not visit.is_htmx:
                return redirect(visit, found_url)
            loaded = await opened.load(tx, page.rows)
        values = {"view": opened.view, "page": page, "heads": self.columns.heads, "found_url": found_url}
        return render(visit, self.template, **{**values, **opened.values, **loaded})

    async def export(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            opened = await self.open(tx, visit)
        rows = read_all_rows(opened.source, visit.database.reading, limit=self.rows_at_once)
        cells = (self.columns.cells(row, sees_personal=visit.sees_personal) async for row in rows)
        file_name = self.file_name.format(subject=opened.subject, organization=visit.organization.slug)
        return export_csv(visit, self.act, file_name, self.columns.header(), cells, subject=opened.subject)

    def pages(self, path: str, *, needs: Action, file_needs: Action | None = None) -> tuple[Page, Page]:
        return (
            Page(path=path, needs=needs, handle=self.show),
            Page(path=f"{path}.csv", needs=file_needs or needs, handle=self.export, harm=Harm.EXPORTS),
        )
