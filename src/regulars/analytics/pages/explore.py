"""The page Explore: a measure that the user chooses, by up to two dimensions, beside another period, as a table, a
picture or a file."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from starlette.responses import Response

from regulars.analytics.figure_table import FigureTable, Group, make_table
from regulars.analytics.figures import Figures, answer_query
from regulars.analytics.pages.answers import PAGE_WAIT_S, AnalysisResult, await_answer
from regulars.analytics.pages.filters import LIST_VALUES_MAX, AnalysisView, list_currencies, read_view
from regulars.analytics.pages.frame import (
    Definition,
    export_table,
    list_saved_views,
    name_part,
    render_analysis,
    render_refused,
    short_name_part,
)
from regulars.analytics.pages.measure_pages import make_query
from regulars.analytics.pages.measures import choose_currency, show_value
from regulars.analytics.pages.net_chart import BARS_MAX
from regulars.analytics.period import Unit, parts_of
from regulars.analytics.query import (
    DAYS_MAX,
    DIMENSIONS,
    MEASURES,
    NET,
    PROPERTY_PREFIX,
    TIMES,
    Query,
    QueryRefused,
    Value,
    label_dimension,
    read_dimension,
    read_measure,
)
from regulars.analytics.segment_conditions import resolve_members
from regulars.catalog.entries import list_entries
from regulars.catalog.model import Catalog
from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.questions import GROUPS_MAX, ProductGroup, ProductKey
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.kit.keyset import PageRequest
from regulars.sales.model import Currency
from regulars.segments.audience import AudienceRefused
from regulars.web.access import Action
from regulars.web.charts import Chart, bar_chart, short_label
from regulars.web.format import NOTHING, Format, country_name
from regulars.web.render import redirect
from regulars.web.visit import Visit

PATH: Final = "/analyse/explore"
FIELDS: Final = ("measure", "rows", "then", "product", "show")
PROPERTIES_OFFERED_MAX: Final = 200
ROWS_SHOWN_MAX: Final = 200
# A group with fewer customers is not shown to roles that see no personal data.
CUSTOMERS_MIN: Final = 5
_NEWNESS: Final = {"new": "New in the period", "known": "Known from before", "unknown": "Unknown customer"}
# What a bar of height 1 is of each unit; money is drawn in whole units, rates in percent.
_BAR_UNITS: Final = {"money": 100, "refund": 100, "rate": 0.01}
DEFINITIONS: Final = (
    *(Definition(measure.label, measure.definition) for measure in MEASURES.values()),
    Definition("New or known", "Whether the customer's first purchase ever is in the period or before it."),
    Definition("Country", "That of the address of the store."),
)


class ShownRow(NamedTuple):
    """A group as text: for each dimension a name and a note, such as a code; the measure, the same then, the change."""

    names: Sequence[tuple[str, str]]
    value: str
    compared: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTable:
    currency: str
    currencies: Sequence[str]
    # All groups, of which the page shows the first.
    groups: int
    rows: Sequence[ShownRow]
    total: ShownRow | None
    chart: Chart | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A field of the question, its choices by value, and the chosen one."""

    name: str
    label: str
    choices: Sequence[tuple[str, str]]
    chosen: str


class ExplorePages:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            view = await _read_view(tx, visit)
            saved_views = await list_saved_views(tx, visit, view)
        try:
            query, sold_in = await _read_query(visit, view)
            answer = await self._answer(visit, query, deadline_s=PAGE_WAIT_S)
        except (QueryRefused, AudienceRefused) as error:
            view.form.refuse("rows", str(error))
            async with visit.database.reading() as tx:
                return await render_refused(tx, visit, view, "Explore")
        return render_analysis(
            visit,
            "analytics/explore.html",
            view,
            views=saved_views,
            defined=DEFINITIONS,
            # What the process refused, it would refuse again.
            reloads=answer.progress is not None,
            reloads_soon=answer.is_nearly_ready,
            answer=answer,
            heads=[*map(label_dimension, query.by)],
            measure=query.measures[0],
            choices=await _list_choices(visit, view),
            offered=view.offered_segments if any(it.kind == "segment" for it in query.by) else (),
            among=[*map(SEGMENT.encode, query.segment_ids)],
            customers_min=CUSTOMERS_MIN,
            shown=None if answer.figures is None else await _show_figures(visit, view, query, answer.figures, sold_in),
        )

    async def export(self, visit: Visit) -> Response:
        """Export all groups with the total. If they are not counted yet, redirect to the page."""
        async with visit.database.reading() as tx:
            view = await _read_view(tx, visit)
        try:
            query, sold_in = await _read_query(visit, view.require_readable())
            figures = (await self._answer(visit, query, deadline_s=DEADLINE_S)).figures
        except (QueryRefused, AudienceRefused):
            figures = None
        if figures is None:
            return redirect(visit, view.url())
        _, _, table = await _make_table(visit, view, query, figures, sold_in)
        totals = [{table.columns[0]: "total", **row} for row in table.rows(table.totals)]
        rows = [*table.rows(table.groups), *totals]
        cells = [["" if row.get(name) is None else str(row[name]) for name in table.columns] for row in rows]
        return export_table(visit, "explore.csv", table.columns, cells)

    async def _answer(self, visit: Visit, query: Query, *, deadline_s: float) -> AnalysisResult[Figures]:
        return await await_answer(
            answer_query(visit.database, self._analysis, visit.organization_id, query, deadline_s=deadline_s)
        )


async def _read_view(tx: Tx, visit: Visit) -> AnalysisView:
    view = await read_view(tx, visit, PATH, fields=FIELDS, lists=("among",), compare="none")
    if view.period.days > DAYS_MAX:
        view.form.refuse("from", f"Explore shows at most {DAYS_MAX} days; this period has {view.period.days:,}.")
    return view


async def _read_query(visit: Visit, view: AnalysisView) -> tuple[Query, Sequence[str]]:
    """The question of the address, and the currencies of the period: the chosen one or that with most sales first."""
    if view.form.is_refused:
        raise QueryRefused("Correct the filters.")
    texts = [view.value("rows") or "day", view.value("then")]
    by = tuple(read_dimension(text) for text in texts if text)
    if any(dimension.kind == "segment" for dimension in by):
        visit.require(Action.READ_SEGMENTS)
        if view.segment is not None:
            raise QueryRefused("Choose segments as the rows or as the filter.")
    async with visit.database.reading() as tx:
        sold_in = await list_currencies(tx, visit, view)
    product = view.value("product")
    query = replace(
        await make_query(visit, view, *by),
        measures=(read_measure(view.value("measure") or NET.name),),
        products=(ProductGroup(ProductKey(), "value", product),) if product else (),
        currency=sold_in[0],
        customers_min=0 if visit.sees_personal else CUSTOMERS_MIN,
        groups_max=GROUPS_MAX,
    )
    if any(dimension.kind == "segment" for dimension in by):
        query = replace(query, segment_ids=await _list_compared(visit, view))
    query.check()
    return query, sold_in


async def _list_compared(visit: Visit, view: AnalysisView) -> tuple[UUID, ...]:
    """The segments that are compared; the first ones without a fault, if none was chosen."""
    if chosen := view.get_list("among"):
        return tuple(filter(None, map(SEGMENT.decode, chosen)))[:LIST_VALUES_MAX]
    found: list[UUID] = []
    async with visit.database.reading() as tx:
        for segment_id in filter(None, (SEGMENT.decode(it) for it, _ in view.offered_segments)):
            with suppress(AudienceRefused):
                await resolve_members(tx, visit.organization_id, segment_id)
                found.append(segment_id)
            if len(found) == LIST_VALUES_MAX:
                break
    return tuple(found)


async def _make_table(
    visit: Visit, view: AnalysisView, query: Query, figures: Figures, sold_in: Sequence[str]
) -> tuple[str, Sequence[str], FigureTable]:
    """The shown currency, all currencies, and the table in the shown one."""
    chosen = view.value("currency") or query.currency
    currency, currencies = choose_currency(chosen, figures.total, figures.compared_total)
    if query.has_lines:
        # Lines are counted in one currency, and the others are there to be chosen.
        currencies = [*sold_in]
    async with visit.database.reading() as tx:
        only = cast("Currency", currency)
        return currency, currencies, await make_table(tx, visit.organization_id, query, figures, only=only)


async def _show_figures(
    visit: Visit, view: AnalysisView, query: Query, figures: Figures, sold_in: Sequence[str]
) -> ShownTable:
    currency, currencies, table = await _make_table(visit, view, query, figures, sold_in)
    return ShownTable(
        currency=currency,
        currencies=currencies,
        groups=len(table.groups),
        rows=[_show_row(visit.format, query, it, currency) for it in table.groups[:ROWS_SHOWN_MAX]],
        total=next((_show_row(visit.format, query, it, currency) for it in table.totals), None),
        chart=_draw(visit.format, query, table, currency) if view.value("show") == "picture" else None,
    )


async def _list_choices(visit: Visit, view: AnalysisView) -> list[Choice]:
    async with visit.database.reading() as tx:
        entries = await list_entries(tx, visit.organization_id, Catalog.PRODUCTS, PageRequest(PROPERTIES_OFFERED_MAX))
    may_segment = visit.may(Action.READ_SEGMENTS)
    dimensions = [
        *((name, label) for name, (_, label) in DIMENSIONS.items() if name != "segment" or may_segment),
        *((PROPERTY_PREFIX + entry.key, entry.key) for entry in entries),
    ]
    measures = [(name, measure.label) for name, measure in MEASURES.items()]
    return [
        Choice(name="measure", label="Measure", choices=measures, chosen=view.value("measure") or NET.name),
        Choice(name="rows", label="By", choices=dimensions, chosen=view.value("rows") or "day"),
        Choice(name="then", label="and by", choices=[("", "nothing else"), *dimensions], chosen=view.value("then")),
    ]


def _show_row(formats: Format, query: Query, group: Group, currency: str) -> ShownRow:
    [measure], [value], [compared] = query.measures, group.values, group.compared
    has_change = query.comparison is not None and value is not None and compared is not None
    return ShownRow(
        [_name(formats, query, group, position) for position in range(len(group.keys))],
        show_value(formats, measure, value, currency),
        show_value(formats, measure, compared, currency),
        formats.aligned_delta(float(value or 0), float(compared or 0)) if has_change else NOTHING,
    )


def _name(formats: Format, query: Query, group: Group, position: int) -> tuple[str, str]:
    """The name of a group by one of its keys, and a note."""
    dimension, key = query.by[position], group.keys[position]
    text, name = group.texts[position], group.names[position]
    if key is None:
        return f"No {label_dimension(dimension).lower()}", ""
    match dimension.kind:
        case "day":
            return formats.weekday(key), ""
        case "week":
            return f"Week of {formats.day(key)}", ""
        case "month":
            months = parts_of(query.period, "month")
            part = next(it for it in months if (it.first.year, it.first.month) == (key.year, key.month))
            return name_part(formats, part, "month"), ""
        case "hour":
            return f"{key:02d}:00", ""
        case "country":
            return country_name(key), ""
        case "newness":
            return _NEWNESS[key], ""
        case "product":
            return name or text, text if name else ""
        case _:
            return name or text, ""


def _draw(formats: Format, query: Query, table: FigureTable, currency: str) -> Chart:
    """Bars of all times of the period, or of the largest groups."""
    [measure] = query.measures
    if len(query.by) == 1 and query.by[0].kind in TIMES:
        found = {group.keys: group for group in table.groups}
        bars = [(label, found.get((key,))) for key, label in _times(formats, query)]
    else:
        groups = sorted(table.groups, key=lambda group: -(group.values[0] or 0))[:BARS_MAX]
        bars = [("", group) for group in groups]
    rows = [None if group is None else _show_row(formats, query, group, currency) for _, group in bars]
    names = [
        label if row is None else ", ".join(name for name, _ in row.names)
        for (label, _), row in zip(bars, rows, strict=True)
    ]
    unit = _BAR_UNITS.get(measure.unit, 1)

    def height(values: Sequence[Value]) -> float:
        return float(values[0] or 0) / unit if values else 0.0

    return bar_chart(
        [0.0 if group is None else height(group.values) for _, group in bars],
        titles=[f"{name}: {row.value if row else NOTHING}" for name, row in zip(names, rows, strict=True)],
        labels=[label or short_label(name) for (label, _), name in zip(bars, names, strict=True)],
        is_last_partial=False,
        compared=[]
        if query.comparison is None
        else [0.0 if group is None else height(group.compared) for _, group in bars],
    )


def _times(formats: Format, query: Query) -> list[tuple[Any, str]]:
    """The keys of all times of the period, with their names below a chart."""
    kind = query.by[0].kind
    if kind == "hour":
        return [(hour, f"{hour:02d}:00") for hour in range(24)]
    parts = parts_of(query.period, cast("Unit", kind))
    return [(part.first, short_name_part(formats, part, cast("Unit", kind))) for part in parts]
