"""The page of sales: net, returns and other measures by hour, day, week or month, compared with an earlier period."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final

from regulars.analytics.figures import Figures, Keys
from regulars.analytics.holidays import find_holidays
from regulars.analytics.pages.filters import AnalysisView
from regulars.analytics.pages.frame import name_part, short_name_part
from regulars.analytics.pages.measure_pages import (
    HeadlineStat,
    MeasurePages,
    MeasureTable,
    tickets_url,
    total_row,
)
from regulars.analytics.pages.measures import MeasureRow, choose_currency, sort_rows, sums_in
from regulars.analytics.pages.net_chart import NetBar, describe_net
from regulars.analytics.period import Period, Unit, parts_of
from regulars.analytics.query import DAY, HOUR
from regulars.columns.questions import Dimension
from regulars.consent.figures import WEEKS_COUNTED, read_figures
from regulars.sales.totals.model import PerCurrency, Sums, add_up
from regulars.web.charts import Chart, bar_chart
from regulars.web.format import Format
from regulars.web.visit import Visit

PATH: Final = "/analyse/sales"
# The longest period whose moved holidays are listed, and the longest for which opt-ins are counted.
MOVED_HOLIDAYS_DAYS_MAX: Final = 62
OPT_IN_DAYS_MAX: Final = 7 * WEEKS_COUNTED


@dataclass(frozen=True, slots=True, kw_only=True)
class SalesTable(MeasureTable):
    unit: str
    chart: Chart
    # Holidays that fell on another day in the compared period.
    moved_holidays: Sequence[str] = ()


class SalesPages(MeasurePages):
    path, title, template = PATH, "Sales", "analytics/sales.html"

    def dimension(self, view: AnalysisView) -> Dimension:
        """One day is shown by hour, except the sales of a segment, which have no hours."""
        has_hours = view.period.days == 1 and view.segment is None
        return HOUR if has_hours and view.value("by") in {"", "hour"} else DAY

    async def stats(self, visit: Visit, view: AnalysisView, figures: Figures) -> list[HeadlineStat]:
        """The numbers above the chart. Opt-ins are shown only for the last 26 weeks, and not by store or segment."""
        stats = await super().stats(visit, view, figures)
        is_counted = view.period.last == view.today and view.period.days <= OPT_IN_DAYS_MAX
        if not is_counted or view.stores or view.segment is not None or view.is_like_for_like:
            return stats
        consent = await read_figures(visit.database, visit.organization_id, time_zone=visit.format.zone.key)
        if consent.figures is None or not figures.total.tickets:
            return stats
        opt_ins = consent.figures.since(view.period.first).opt_ins
        per_100 = visit.format.number(round(100 * opt_ins / figures.total.tickets, 1))
        url = visit.url("/consent")
        return [
            *stats,
            HeadlineStat("Opt-ins per 100 tickets", "", per_100, f"{visit.format.number(opt_ins)} opt-ins", url),
        ]

    async def table(self, visit: Visit, view: AnalysisView, figures: Figures) -> SalesTable:
        currency, currencies = choose_currency(view.value("currency"), figures.total, figures.compared_total)
        requested_unit = view.value("by")
        if self.dimension(view) == HOUR:
            return _hours_table(visit, view, figures, currency=currency, currencies=currencies)
        unit = requested_unit if requested_unit in view.period.units else view.period.default_unit
        holidays: dict[date, str] = {}
        # A month has too many to name.
        if unit != "month":
            comparison = view.comparison
            periods = [view.period, *([] if comparison is None else [comparison.period])]
            stores = view.known_stores if figures.store_ids is None else figures.store_ids
            async with visit.database.reading() as tx:
                holidays = await find_holidays(tx, visit.organization_id, list(stores), periods)
        parts = parts_of(view.period, unit)
        notes = [_describe_holidays(view, part, holidays) for part in parts]
        rows = [
            _part_row(visit, view, figures, part, unit=unit, currency=currency, holiday=note)
            for part, note in zip(parts, notes, strict=True)
        ]
        chart = bar_chart(
            [row.sums.net_cents / 100 for row in rows],
            titles=[_bar_title(visit.format, row, currency) for row in rows],
            labels=[short_name_part(visit.format, part, unit) for part in parts],
            is_last_partial=view.period.last == view.today,
            compared=[] if view.comparison is None else [_net(row.compared) for row in rows],
            marked={index: note for index, note in enumerate(notes) if note},
        )
        return SalesTable(
            currency=currency,
            currencies=currencies,
            unit=unit,
            rows=sort_rows(list(reversed(rows)), view.value("sort")),
            total=total_row(visit, view, figures, currency, visit.format.count(view.period.days, "day")),
            chart=chart,
            moved_holidays=_moved_holidays(visit.format, view, holidays) if unit == "day" else (),
        )


def _part_row(
    visit: Visit,
    view: AnalysisView,
    figures: Figures,
    part: Period,
    *,
    unit: Unit,
    currency: str,
    holiday: str,
) -> MeasureRow:
    """The row of a day, week or month."""
    comparison = view.comparison
    compared = None
    compared_part = None if comparison is None else comparison.compared_part_of(part)
    if compared_part is not None:
        compared = sums_in(_add_days(figures.compared, part), currency)
    # A week or month links to its days; a day, to the default unit.
    linked_unit = None if unit == "day" else "day"
    notes = [holiday] if holiday else []
    if part.first == part.last == view.today and not holiday:
        notes.append(f"until {visit.format.clock(visit.now)}")
    if unit == "day" and compared_part is not None and compared_part.days > 1:
        notes.append(f"compared with {visit.format.period(compared_part.first, compared_part.last)}")
    hour_sums = sums_in(figures.current_hour.get((view.today,)), currency)
    return MeasureRow(
        part.first.isoformat(),
        name_part(visit.format, part, unit),
        view.url_of(part, by=linked_unit, sort=None),
        "; ".join(notes),
        tickets_url(visit, view, part, currency, store_ids=figures.store_ids),
        sums_in(_add_days(figures.rows, part), currency),
        compared,
        current_hour_net_cents=hour_sums.net_cents if view.today in part else 0,
    )


def _describe_holidays(view: AnalysisView, part: Period, holidays: Mapping[date, str]) -> str:
    """The names of the holidays of a day or week, and of the other holidays of the days it is compared with."""
    compared_part = None if view.comparison is None else view.comparison.compared_part_of(part)
    names = list(dict.fromkeys(holidays[day] for day in part if day in holidays))
    days = [] if compared_part is None else [day for day in compared_part if day in holidays]
    compared = [name for name in dict.fromkeys(holidays[day] for day in days) if name not in names]
    return "; ".join([*names, *([f"compared with {', '.join(compared)}"] if compared else [])])


def _hours_table(
    visit: Visit,
    view: AnalysisView,
    figures: Figures,
    *,
    currency: str,
    currencies: Sequence[str],
) -> SalesTable:
    """The hours of one day, from the first with a ticket to the last."""
    sums = [sums_in(hour, currency) for hour in figures.of(range(24)).values()]
    open_hours = [hour for hour, hour_sums in enumerate(sums) if hour_sums.tickets] or [0]
    day, link = view.period.first.isoformat(), partial(tickets_url, visit, view, view.period, currency)
    rows = [
        MeasureRow(
            f"{day}T{hour:02d}",
            f"{hour:02d}:00",
            "",
            "",
            link(store_ids=figures.store_ids, hour=hour),
            sums[hour],
            None,
        )
        for hour in range(open_hours[0], open_hours[-1] + 1)
    ]
    chart = bar_chart(
        [row.sums.net_cents / 100 for row in rows],
        titles=[_bar_title(visit.format, row, currency) for row in rows],
        labels=[row.name for row in rows],
        is_last_partial=view.period.last == view.today,
    )
    total = total_row(visit, view, figures, currency, visit.format.weekday(view.period.first))
    return SalesTable(
        currency=currency,
        currencies=currencies,
        unit="hour",
        rows=sort_rows(rows, view.value("sort")),
        total=total,
        chart=chart,
    )


def _add_days(days: Mapping[Keys, PerCurrency], added: Period) -> PerCurrency:
    return add_up(item for day in added if (day,) in days for item in days[day,].sums.items())


def _net(sums: Sums | None) -> float | None:
    return None if sums is None else sums.net_cents / 100


def _bar_title(formats: Format, row: MeasureRow, currency: str) -> str:
    compared_cents = None if row.compared is None else row.compared.net_cents
    return describe_net(formats, NetBar(row.name, row.sums.net_cents, compared_cents), currency)


def _moved_holidays(formats: Format, view: AnalysisView, holidays: Mapping[date, str]) -> list[str]:
    """Sentences about holidays that are compared with an ordinary day, because they moved between the periods."""
    comparison = view.comparison
    if comparison is None or view.period.days > MOVED_HOLIDAYS_DAYS_MAX:
        return []
    compared_days = {name: day for day, name in holidays.items() if day in comparison.period}
    sentences = []
    for day, name in holidays.items():
        if day in view.period and comparison.compared_day_of(day) != compared_days.get(name) and name in compared_days:
            sentences.append(f"{name} was on {formats.weekday(compared_days[name])} and is on {formats.weekday(day)}.")
    return [*sentences, "So both days are compared with a usual day."] if sentences else []
