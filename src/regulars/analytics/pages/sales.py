"""The page of sales: net and its parts by hour, day, week or month, beside another period."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.analytics.holidays import find_holidays
from regulars.analytics.pages.answers import Answered
from regulars.analytics.pages.filters import AnalysisView, read_view
from regulars.analytics.pages.frame import (
    export_table,
    list_own_views,
    name_part,
    render_analysis,
    render_refused,
    short_name_part,
)
from regulars.analytics.pages.measures import (
    BY_NAME,
    CSV_HEADER,
    MEASURES,
    SALES_DEFINITIONS,
    FigureRow,
    choose_currency,
    csv_row,
    sums_in,
)
from regulars.analytics.pages.sales_source import ComparedSales, SalesSource
from regulars.analytics.period import FIRST_DAY, Period, Unit, parts_of
from regulars.analytics.sales_figures import By
from regulars.consent.figures import WEEKS, read_figures
from regulars.kit.ids import STORE
from regulars.sales.totals.model import PerCurrency, Sums, add_totals, add_up
from regulars.sales.totals.reports import find_first_day
from regulars.web.charts import Chart, bar_chart
from regulars.web.format import Format
from regulars.web.render import redirect
from regulars.web.visit import Visit

PATH: Final = "/analyse/sales"
HOLIDAYS_DAYS_MAX: Final = 62
OPT_IN_DAYS_MAX: Final = 7 * WEEKS


class CurrencyStat(NamedTuple):
    name: str
    currency: str
    figure: str
    more: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SalesTable:
    currency: str
    currencies: Sequence[str]
    unit: str
    rows: Sequence[FigureRow]
    whole: FigureRow
    chart: Chart
    # Up to which hour today is compared.
    until: str = ""
    has_opt_ins: bool = False
    # Holidays that fell on another day in the compared period.
    moved_holidays: Sequence[str] = ()


class SalesPages:
    def __init__(self, source: SalesSource) -> None:
        self._source = source

    async def show(self, visit: Visit) -> Response:
        async with visit.database.reading() as tx:
            view = await read_view(tx, visit, PATH)
            if view.form.is_refused:
                return await render_refused(tx, visit, view, "Sales")
            views = await list_own_views(tx, visit, view)
            first_day = await find_first_day(tx, visit.organization_id, since=FIRST_DAY)
        answer = await self._source.load(visit, view, By.DAY)
        figures = answer.figures
        return render_analysis(
            visit,
            "analytics/sales.html",
            view,
            views=views,
            defined=SALES_DEFINITIONS,
            is_live=is_counting(answer),
            is_soon=answer.is_soon,
            answer=answer,
            first_day=first_day,
            table=None if figures is None else await self._table(visit, view, figures),
            stats=[] if figures is None else await self._stats(visit, view, figures),
            measures=MEASURES,
        )

    async def _stats(self, visit: Visit, view: AnalysisView, figures: ComparedSales) -> list[CurrencyStat]:
        """Opt-ins are counted for 26 weeks up to today, and neither by store nor by segment."""
        stats = money_stats(visit.format, view, figures)
        is_counted = view.period.last == view.today and view.period.days <= OPT_IN_DAYS_MAX
        if not is_counted or view.stores or view.segment is not None or view.is_like_for_like:
            return stats
        consent = await read_figures(visit.database, visit.organization_id, time_zone=visit.format.zone.key)
        if consent.figures is None or not figures.whole.tickets:
            return stats
        opt_ins = consent.figures.since(view.period.first).opt_ins
        per_100 = visit.format.number(round(100 * opt_ins / figures.whole.tickets, 1))
        url = visit.url("/consent")
        return [
            *stats,
            CurrencyStat("Opt-ins per 100 tickets", "", per_100, f"{visit.format.number(opt_ins)} opt-ins", url),
        ]

    async def export(self, visit: Visit) -> Response:
        """The table as it is shown, with its total; the page, which says how far it is, until it is counted."""
        async with visit.database.reading() as tx:
            view = (await read_view(tx, visit, PATH)).require_readable()
        figures = (await self._source.load(visit, view, By.DAY, is_patient=True)).figures
        if figures is None:
            return redirect(visit, view.url())
        table = await self._table(visit, view, figures)
        rows = [csv_row(row, table.currency) for row in (*table.rows, table.whole)]
        return export_table(visit, "sales.csv", CSV_HEADER, rows)

    async def _table(self, visit: Visit, view: AnalysisView, figures: ComparedSales) -> SalesTable:
        currency, currencies = choose_currency(view.value("currency"), figures.whole, figures.compared_whole)
        wanted = view.value("by")
        if wanted in {"", "hour"} and view.period.days == 1 and view.segment is None:
            hours = await self._source.load_hours(visit, view, figures.store_ids)
            return _hours_table(visit, view, figures, hours, currency=currency, currencies=currencies)
        unit = wanted if wanted in view.period.units else view.period.usual_unit
        holidays: dict[date, str] = {}
        if unit == "day" and view.period.days <= HOLIDAYS_DAYS_MAX:
            comparison = view.comparison
            periods = [view.period, *([] if comparison is None else [comparison.period])]
            stores = view.known_stores if figures.store_ids is None else figures.store_ids
            async with visit.database.reading() as tx:
                holidays = await find_holidays(tx, visit.organization_id, list(stores), periods)
        parts = parts_of(view.period, unit)
        rows = [
            _part_row(visit, view, figures, part, unit=unit, currency=currency, holidays=holidays) for part in parts
        ]
        chart = bar_chart(
            [row.sums.net_cents / 100 for row in rows],
            titles=[_title(visit.format, row, currency) for row in rows],
            labels=[short_name_part(visit.format, part, unit) for part in parts],
            is_last_open=view.period.last == view.today,
            compared=[] if view.comparison is None else [_net(row.compared) for row in rows],
            marked={n: holidays[part.first] for n, part in enumerate(parts) if part.first in holidays},
        )
        return SalesTable(
            currency=currency,
            currencies=currencies,
            unit=unit,
            rows=sort_rows(list(reversed(rows)), view.value("sort")),
            whole=whole_row(visit, view, figures, currency, visit.format.count(len(parts), unit)),
            chart=chart,
            until=f"{visit.format.clock(visit.now)[:2]}:00" if figures.is_until_hour else "",
            moved_holidays=_moved_holidays(visit.format, view, holidays),
        )


def is_counting(answer: Answered[ComparedSales]) -> bool:
    """Whether the page has to be asked again."""
    figures = answer.figures
    return figures is None or figures.filled_until is not None or figures.counted_until is not None


def sort_rows(rows: list[FigureRow], sort: str) -> list[FigureRow]:
    """By a measure, the largest first; rows without a value last. Otherwise as they are."""
    if sort not in BY_NAME:
        return rows
    values = [(row, BY_NAME[sort].raw(row.sums)) for row in rows]
    return [row for row, value in sorted(values, key=lambda it: (it[1] is None, -(it[1] or 0)))]


def tickets_url(visit: Visit, view: AnalysisView, period: Period, currency: str, store: str = "") -> str:
    """The list of the tickets behind a figure, where it has filters for them."""
    if view.segment is not None or (len(view.stores) > 1 and not store):
        return ""
    chosen = store or next((STORE.encode(it) for it in view.stores), "")
    at_store = f"&store={chosen}" if chosen else ""
    days = f"?from={period.first.isoformat()}&to={period.last.isoformat()}"
    return visit.url("/tickets") + f"{days}&currency={currency}{at_store}"


def whole_row(visit: Visit, view: AnalysisView, figures: ComparedSales, currency: str, name: str) -> FigureRow:
    compared = None if view.comparison is None else sums_in(figures.compared_whole, currency)
    url = tickets_url(visit, view, view.period, currency)
    late = sums_in(add_totals(figures.late.values()), currency).net_cents
    return FigureRow("total", name, "", "", url, sums_in(figures.whole, currency), compared, late_net_cents=late)


def _part_row(
    visit: Visit,
    view: AnalysisView,
    figures: ComparedSales,
    part: Period,
    *,
    unit: Unit,
    currency: str,
    holidays: Mapping[date, str],
) -> FigureRow:
    comparison = view.comparison
    compared = None
    if comparison is not None:
        past = [day for day in map(comparison.past_of, part) if day is not None]
        compared = sums_in(_add_days(figures.compared, past), currency) if past else None
    finer = None if unit == "day" else "day"
    is_today = part.first == part.last == view.today
    return FigureRow(
        part.first.isoformat(),
        name_part(visit.format, part, unit),
        view.url_of(part, by=finer, sort=None),
        holidays.get(part.first, "") or (f"until {visit.format.clock(visit.now)}" if is_today else ""),
        tickets_url(visit, view, part, currency),
        sums_in(_add_days(figures.rows, part), currency),
        compared,
        late_net_cents=sums_in(figures.late.get(view.today), currency).net_cents if view.today in part else 0,
    )


def _hours_table(
    visit: Visit,
    view: AnalysisView,
    figures: ComparedSales,
    hours: Sequence[PerCurrency],
    *,
    currency: str,
    currencies: Sequence[str],
) -> SalesTable:
    """The hours of one day, from the first with a ticket to the last."""
    sums = [sums_in(hour, currency) for hour in hours]
    open_hours = [hour for hour, one in enumerate(sums) if one.tickets] or [0]
    day, url = view.period.first.isoformat(), tickets_url(visit, view, view.period, currency)
    rows = [
        FigureRow(f"{day}T{hour:02d}", f"{hour:02d}:00", "", "", url, sums[hour], None)
        for hour in range(open_hours[0], open_hours[-1] + 1)
    ]
    chart = bar_chart(
        [row.sums.net_cents / 100 for row in rows],
        titles=[_title(visit.format, row, currency) for row in rows],
        labels=[row.name for row in rows],
        is_last_open=view.period.last == view.today,
    )
    whole = whole_row(visit, view, figures, currency, visit.format.weekday(view.period.first))
    return SalesTable(
        currency=currency,
        currencies=currencies,
        unit="hour",
        rows=sort_rows(rows, view.value("sort")),
        whole=whole,
        chart=chart,
    )


def _add_days(days: Mapping[date, PerCurrency], wanted: Period | Sequence[date]) -> PerCurrency:
    return add_up(item for day in wanted if day in days for item in days[day].sums.items())


def _net(sums: Sums | None) -> float | None:
    return None if sums is None else sums.net_cents / 100


def _title(formats: Format, row: FigureRow, currency: str) -> str:
    net = formats.money_rounded(row.sums.net_cents, currency)
    if row.compared is None:
        return f"{row.name}: {net}"
    return f"{row.name}: {net}, {formats.money_rounded(row.compared.net_cents, currency)} in the compared period"


def money_stats(formats: Format, view: AnalysisView, figures: ComparedSales) -> list[CurrencyStat]:
    """One for each currency, and the tickets of all."""
    stats, late = [], add_totals(figures.late.values())
    for currency, sums in figures.whole.by_size():
        net, past = sums.net_cents, sums_in(figures.compared_whole, currency).net_cents
        more = (
            f"{formats.delta(net - sums_in(late, currency).net_cents, past)} on {formats.money_rounded(past, currency)}"
            if past > 0
            else ""
        )
        stats.append(
            CurrencyStat(
                f"Net sales, {currency}",
                currency,
                formats.money_rounded(net, currency),
                more or ("no comparison" if view.comparison is not None else ""),
                view.url(currency=currency),
            )
        )
    tickets, past = figures.whole.tickets, figures.compared_whole.tickets
    more = f"{formats.delta(tickets - late.tickets, past)} on {formats.number(past)}" if past else ""
    return [*stats, CurrencyStat("Tickets", "", formats.number(tickets), more, "")]


def _moved_holidays(formats: Format, view: AnalysisView, holidays: Mapping[date, str]) -> list[str]:
    """Holidays that are compared with a usual day, since they fell on another weekday then."""
    comparison = view.comparison
    if comparison is None:
        return []
    then = {name: day for day, name in holidays.items() if day in comparison.period}
    found = []
    for day, name in holidays.items():
        if day in view.period and comparison.past_of(day) != then.get(name) and name in then:
            found.append(f"{name} was on {formats.weekday(then[name])} and is on {formats.weekday(day)}.")
    return [*found, "So both days are compared with a usual day."] if found else []
