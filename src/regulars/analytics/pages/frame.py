"""Renders the parts that all pages of analytics share: filters, definitions, saved views, and the CSV file."""

from calendar import monthrange
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.analytics.model import SavedView
from regulars.analytics.pages.filters import COMPARE_LABELS, AnalysisView
from regulars.analytics.period import Period, Unit
from regulars.analytics.saved_views import list_views
from regulars.conditions.tree import All
from regulars.kit.db import Tx
from regulars.web.access import Action
from regulars.web.format import NOTHING, Format
from regulars.web.render import render
from regulars.web.visit import Visit

# The fields that the form of the filters shows; other fields of the URL are hidden fields of the form.
SHOWN_FIELDS: Final = ("from", "to", "compare", "like", "store", "segment")


class Definition(NamedTuple):
    label: str
    text: str


class CsvFile(NamedTuple):
    """A table as a file: one row for each row of the page, with exact numbers instead of formatted ones."""

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def render_analysis(
    visit: Visit,
    template: str,
    view: AnalysisView,
    *,
    views: Sequence[SavedView],
    defined: Sequence[Definition],
    reloads: bool = False,
    reloads_soon: bool = False,
    counted_zone: str | None = None,
    **values: Any,
) -> Response:
    """Render a page with the definitions of its measures (`defined`). With `reloads`, numbers are missing, so the
    browser requests the page again; with `reloads_soon`, the first time in less than a second. `counted_zone` is the
    time zone in which the numbers were counted, if it may differ from the one that pages use."""
    return render(
        visit,
        template,
        status=400 if view.form.is_refused else 200,
        view=view,
        counted_zone=counted_zone or visit.format.zone.key,
        form=view.form,
        views=views,
        defined=defined,
        reloads=reloads,
        again="load delay:400ms, every 2s" if reloads_soon else "every 2s",
        compare_labels=COMPARE_LABELS,
        shown_fields=SHOWN_FIELDS,
        **values,
    )


async def render_refused(tx: Tx, visit: Visit, view: AnalysisView, title: str) -> Response:
    """Render the filters with their errors, and no table."""
    saved_views = await list_saved_views(tx, visit, view)
    return render_analysis(visit, "analytics/refused.html", view, views=saved_views, defined=(), title=title)


async def list_saved_views(tx: Tx, visit: Visit, view: AnalysisView) -> list[SavedView]:
    return await list_views(tx, visit.organization_id, visit.user.id, page=view.page)


def segment_url(visit: Visit, match: All | None) -> str:
    """The URL of the page that creates a segment with these conditions; empty without conditions, or if the user may
    not edit segments."""
    if match is None or not visit.may(Action.EDIT_SEGMENTS):
        return ""
    return visit.url("/segments/new") + "?" + urlencode({"match": msgspec.json.encode(match).decode()})


def export_table(visit: Visit, filename: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Response:
    async def lines() -> AsyncIterator[Sequence[str]]:
        for row in rows:
            yield row

    return export_csv(visit, "analyse.export", filename, header, lines())


def raw_share(part: float, whole: float) -> str:
    """A share for a CSV file; empty where a page shows a dash."""
    return str(round(part / whole, 6)) if whole > 0 else ""


def name_part(formats: Format, part: Period, unit: Unit) -> str:
    """The name of a day, week or month in a table; an incomplete month is named by its days."""
    if unit == "day":
        return formats.weekday(part.first)
    if unit == "month":
        is_whole = part.days == monthrange(part.first.year, part.first.month)[1]
        return formats.month(part.first) if is_whole else formats.period(part.first, part.last)
    # NOTHING is a dash, which pages also show instead of a missing value.
    return f"{formats.day(part.first)} {NOTHING} {formats.day(part.last)}"


def short_name_part(formats: Format, part: Period, unit: Unit) -> str:
    """The name of a day, week or month below a chart."""
    return formats.month(part.first) if unit == "month" else formats.day(part.first)
