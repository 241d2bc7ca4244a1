"""What all pages of analytics have around their figures: filters, definitions, saved views, and a file of the table."""

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

# In the form of the filters; a field of the address that is none of these is hidden in it.
SHOWN_FIELDS: Final = ("from", "to", "compare", "like", "store", "segment")


class Definition(NamedTuple):
    label: str
    text: str


def render_analysis(
    visit: Visit,
    template: str,
    view: AnalysisView,
    *,
    views: Sequence[SavedView],
    defined: Sequence[Definition],
    is_live: bool = False,
    is_soon: bool = False,
    **values: Any,
) -> Response:
    """`is_live`: figures follow, so the page asks again, at once if they are nearly there."""
    return render(
        visit,
        template,
        status=400 if view.form.is_refused else 200,
        view=view,
        form=view.form,
        views=views,
        defined=defined,
        is_live=is_live,
        again="load delay:400ms, every 2s" if is_soon else "every 2s",
        compare_labels=COMPARE_LABELS,
        shown_fields=SHOWN_FIELDS,
        **values,
    )


async def render_refused(tx: Tx, visit: Visit, view: AnalysisView, title: str) -> Response:
    """The filters with their errors, and no figures."""
    views = await list_own_views(tx, visit, view)
    return render_analysis(visit, "analytics/refused.html", view, views=views, defined=(), title=title)


async def list_own_views(tx: Tx, visit: Visit, view: AnalysisView) -> list[SavedView]:
    return await list_views(tx, visit.organization_id, visit.user.id, page=view.page)


def segment_url(visit: Visit, match: All | None) -> str:
    """The builder with these conditions; empty where there are none, or the role may not build segments."""
    if match is None or not visit.may(Action.EDIT_SEGMENTS):
        return ""
    return visit.url("/segments/new") + "?" + urlencode({"match": msgspec.json.encode(match).decode()})


def export_table(visit: Visit, filename: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Response:
    async def lines() -> AsyncIterator[Sequence[str]]:
        for row in rows:
            yield row

    return export_csv(visit, "analyse.export", filename, header, lines())


def name_part(formats: Format, part: Period, unit: Unit) -> str:
    """The name of a day, week or month in a table."""
    if unit == "day":
        return formats.weekday(part.first)
    if unit == "month":
        return formats.month(part.first)
    return f"{formats.day(part.first)} {NOTHING} {formats.day(part.last)}"


def short_name_part(formats: Format, part: Period, unit: Unit) -> str:
    """Below a chart."""
    return formats.month(part.first) if unit == "month" else formats.day(part.first)
