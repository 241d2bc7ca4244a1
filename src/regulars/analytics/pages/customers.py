"""The page of customers: new and returning customers, the time between purchases, RFM groups (recency, frequency,
money), and cohorts by the month of the first purchase."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.analytics.pages import cohorts, rfm
from regulars.analytics.pages.answers import PAGE_WAIT_S, AnalysisResult, await_answer, to_question_period
from regulars.analytics.pages.filters import AnalysisView, list_currencies, read_view
from regulars.analytics.pages.frame import (
    Definition,
    export_table,
    list_saved_views,
    name_part,
    render_analysis,
    render_refused,
    short_name_part,
)
from regulars.analytics.period import Period, Unit
from regulars.analytics.segment_conditions import resolve_members
from regulars.kit.db import Tx
from regulars.sales.model import Currency
from regulars.segments.analysis.client import DEADLINE_S, Analysis
from regulars.segments.analysis.protocol import SegmentQuery
from regulars.segments.analysis.questions import (
    AnswerType,
    CohortsAnswer,
    CohortsQuestion,
    CustomerFigures,
    CustomersAnswer,
    CustomersQuestion,
    IntervalCount,
    QuestionOf,
    RfmAnswer,
    RfmQuestion,
)
from regulars.segments.columns.lifecycle import need_columns
from regulars.web.charts import Chart, stacked_chart
from regulars.web.format import NOTHING, Format
from regulars.web.render import redirect
from regulars.web.visit import Visit

PATH: Final = "/analyse/customers"
# The URL fields of this page: `measure` (the table has customers or their net) and `read` (what the cohorts show).
FIELDS: Final = ("measure", "read")
DEFINITIONS: Final = (
    Definition("Customers who bought", "Known customers with a purchase in the period."),
    Definition("New", "Their first purchase ever is in the period, as known now. A late file may change the past."),
    Definition("Returning", "Their first purchase is earlier."),
    Definition("Repeat rate", "Customers with purchases on two or more days ÷ customers with a purchase."),
    Definition("Time between purchases", "Days from one day with a purchase to the customer's next one."),
    Definition("Net", "Purchases minus returns, with tax, in one currency."),
    Definition(
        "Recency, frequency, money", "Days since the last purchase; days with a purchase, and net, in 24 months."
    ),
    Definition("Cohort", "Customers whose first purchase was in the same month."),
)
CSV_HEADER: Final = (
    "first_day", "last_day", "new", "returning", "repeated", "currency", "new_net_cents", "returning_net_cents",
)  # fmt: skip


class CustomerAnswers(NamedTuple):
    customers: AnalysisResult[CustomersAnswer]
    rfm: AnalysisResult[RfmAnswer]
    cohorts: AnalysisResult[CohortsAnswer]

    @property
    def is_waiting(self) -> bool:
        return any(answer.is_waiting for answer in self)

    @property
    def is_nearly_ready(self) -> bool:
        """Whether an answer is being counted now, so that the browser should request the page again soon."""
        return any(answer.is_nearly_ready for answer in self)


class BucketRow(NamedTuple):
    """New and returning customers, or their net, in one day, week or month (bucket); `share` is that of returning
    customers."""

    name: str
    url: str
    note: str
    new: str
    returning: str
    share: str


class IntervalRow(NamedTuple):
    """The number of purchases that came a range of days after the customer's previous purchase."""

    name: str
    purchases: str
    share: str
    # The width of the bar, in percent of the largest.
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketTable:
    """The table and chart of new and returning customers (or, with `is_net`, of their net), and the time between their
    purchases."""

    is_net: bool
    currency: Currency
    currencies: Sequence[Currency]
    unit: Unit
    chart: Chart
    rows: Sequence[BucketRow]
    intervals: Sequence[IntervalRow]
    median: str


class CustomerPages:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def show(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            view = await _read_view(tx, visit)
            if view.form.is_refused:
                return await render_refused(tx, visit, view, "Customers")
            query, currency = await _prepare(tx, visit, view)
            saved_views = await list_saved_views(tx, visit, view)
        request = partial(self._analysis.answer, visit.organization_id, query, deadline_s=PAGE_WAIT_S)
        answers = CustomerAnswers(
            *await asyncio.gather(
                await_answer(request(_customers_question(view))),
                await_answer(request(_rfm_question(view, currency))),
                await_answer(request(_cohorts_question(view))),
            )
        )
        buckets, groups, months = answers.customers.figures, answers.rfm.figures, answers.cohorts.figures
        return render_analysis(
            visit,
            "analytics/customers.html",
            view,
            views=saved_views,
            defined=DEFINITIONS,
            answers=answers,
            figures=buckets,
            table=None if buckets is None else _bucket_table(visit.format, view, buckets, currency),
            groups=None if groups is None else rfm.group_table(visit, view, groups),
            cohorts=None if months is None else cohorts.cohort_table(visit, view, months, currency),
            reloads=answers.is_waiting,
            reloads_soon=answers.is_nearly_ready,
        )

    async def export(self, visit: Visit) -> Response:
        """Export one of the three tables: `table` is empty, `groups` or `cohorts`. If it is not counted yet, redirect
        to the page."""
        async with visit.database.transaction() as tx:
            view = (await _read_view(tx, visit)).require_readable()
            query, currency = await _prepare(tx, visit, view)

        async def request(question: QuestionOf[AnswerType]) -> AnalysisResult[AnswerType]:
            answer = self._analysis.answer(visit.organization_id, query, question, deadline_s=DEADLINE_S)
            return await await_answer(answer)

        header: Sequence[str]
        match visit.query.get("table", ""):
            case "groups":
                header, rows = rfm.CSV_HEADER, (await request(_rfm_question(view, currency))).map(rfm.csv_rows)
            case "cohorts":
                header, rows = cohorts.CSV_HEADER, (await request(_cohorts_question(view))).map(cohorts.csv_rows)
            case _:
                header, rows = CSV_HEADER, (await request(_customers_question(view))).map(_csv_rows)
        return redirect(visit, view.url()) if rows is None else export_table(visit, "customers.csv", header, rows)


def _customers_question(view: AnalysisView) -> CustomersQuestion:
    comparison = view.comparison
    return CustomersQuestion(
        store_ids=view.store_ids,
        period=to_question_period(view.period),
        by=_unit(view),
        comparison=None if comparison is None else to_question_period(comparison.period),
    )


def _rfm_question(view: AnalysisView, currency: Currency) -> RfmQuestion:
    return RfmQuestion(store_ids=view.store_ids, currency=currency)


def _cohorts_question(view: AnalysisView) -> CohortsQuestion:
    return CohortsQuestion(store_ids=view.store_ids, period=to_question_period(view.period))


async def _prepare(tx: Tx, visit: Visit, view: AnalysisView) -> tuple[SegmentQuery, Currency]:
    """Start the build of the columnar data, if there is none, and build the query for the counted customers."""
    await need_columns(tx, visit.organization_id)
    query = await resolve_members(tx, visit.organization_id, view.segment_id)
    return query, (await list_currencies(tx, visit, view))[0]


async def _read_view(tx: Tx, visit: Visit) -> AnalysisView:
    return await read_view(tx, visit, PATH, fields=FIELDS, preset="12m", compare="before")


def _unit(view: AnalysisView) -> Unit:
    requested = view.value("by")
    return requested if requested in view.period.units else view.period.default_unit


def _bucket_table(formats: Format, view: AnalysisView, answer: CustomersAnswer, currency: Currency) -> BucketTable:
    unit = _unit(view)
    is_net = view.value("measure") == "net"
    rows, new, returning = [], [], []
    for bucket in answer.buckets:
        part = Period(bucket.first, bucket.last)
        values = _net_cents(bucket, currency) if is_net else (bucket.new, bucket.returning)
        new.append(values[0])
        returning.append(values[1])
        formatted = [formats.money_rounded(value, currency) if is_net else formats.number(value) for value in values]
        rows.append(
            BucketRow(
                name_part(formats, part, unit),
                view.url_of(part, by=None if unit == "day" else "day"),
                "until today" if view.today in part else "",
                formatted[0],
                formatted[1],
                formats.aligned_share(values[1], sum(values)) if sum(values) > 0 else NOTHING,
            )
        )
    kinds = ("returning", "new")
    # The chart shows whole currency units instead of cents.
    series = [[max(0.0, value / (100 if is_net else 1)) for value in counts] for counts in (returning, new)]
    titles = [
        [f"{row.name}: {row.returning if kind == 'returning' else row.new} {kind}" for row in rows] for kind in kinds
    ]
    chart = stacked_chart(
        series,
        titles=titles,
        labels=[short_name_part(formats, Period(bucket.first, bucket.last), unit) for bucket in answer.buckets],
        is_last_partial=view.period.last == view.today,
    )
    return BucketTable(
        is_net=is_net,
        currency=currency,
        currencies=_currencies(answer),
        unit=unit,
        chart=chart,
        rows=rows[::-1],
        intervals=_interval_rows(formats, answer),
        median=_median(formats, answer),
    )


def _net_cents(figures: CustomerFigures, currency: Currency) -> tuple[int, int]:
    return figures.new_net_cents.get(currency, 0), figures.returning_net_cents.get(currency, 0)


def _currencies(answer: CustomersAnswer) -> list[Currency]:
    nets = answer.whole.new_net_cents, answer.whole.returning_net_cents
    currencies = {currency for net in nets for currency in net}
    return sorted(currencies, key=lambda currency: (-sum(net.get(currency, 0) for net in nets), currency))


def _interval_rows(formats: Format, answer: CustomersAnswer) -> list[IntervalRow]:
    counts = answer.intervals.counts
    total, largest = sum(interval.count for interval in counts), max([interval.count for interval in counts], default=0)
    return [
        IntervalRow(
            _interval_name(interval),
            formats.number(interval.count),
            formats.aligned_share(interval.count, total),
            round(100 * interval.count / largest) if largest else 0,
        )
        for interval in counts
    ]


def _interval_name(interval: IntervalCount) -> str:
    first, last = interval.first_days, interval.last_days
    if last is None:
        return f"{first} days or more"
    return f"{first} days" if first == last else f"{first} to {last} days"


def _median(formats: Format, answer: CustomersAnswer) -> str:
    days = answer.intervals.median_days
    return NOTHING if days is None else f"{formats.number(round(days, 1))} days"


def _csv_rows(answer: CustomersAnswer) -> Iterator[list[str]]:
    """The buckets, newest first, and the whole period last."""
    for bucket in (*reversed(answer.buckets), answer.whole):
        counts = map(str, (bucket.new, bucket.returning, bucket.repeated))
        start = [bucket.first.isoformat(), bucket.last.isoformat(), *counts]
        for currency in _currencies(answer):
            yield [*start, currency, *map(str, _net_cents(bucket, currency))]
