"""The page of customers: new and returning customers, the time between purchases, RFM groups (recency, frequency,
money), and cohorts by the month of the first purchase."""

import asyncio
from functools import partial
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.analytics.pages import cohorts, rfm
from regulars.analytics.pages.answers import PAGE_WAIT_S, AnalysisResult, await_answer, to_question_period
from regulars.analytics.pages.filters import AnalysisView, list_currencies, read_view
from regulars.analytics.pages.frame import (
    CsvFile,
    Definition,
    export_table,
    list_saved_views,
    render_analysis,
    render_refused,
)
from regulars.analytics.pages.new_and_returning import bucket_file, bucket_table, interval_file, interval_table
from regulars.analytics.period import Unit
from regulars.analytics.segment_conditions import resolve_members
from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.lifecycle import need_columns
from regulars.columns.protocol import SegmentQuery
from regulars.columns.questions import (
    AnswerType,
    CohortsAnswer,
    CohortsQuestion,
    CustomersAnswer,
    CustomersQuestion,
    QuestionOf,
    RfmAnswer,
    RfmQuestion,
)
from regulars.kit.db import Tx
from regulars.sales.model import Currency
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
            table=None
            if buckets is None
            else bucket_table(visit.format, view, buckets, unit=_unit(view), currency=currency),
            intervals=None if buckets is None else interval_table(visit.format, buckets),
            groups=None if groups is None else rfm.group_table(visit, view, groups),
            cohorts=None if months is None else cohorts.cohort_table(visit, view, months, currency),
            reloads=answers.is_waiting,
            reloads_soon=answers.is_nearly_ready,
        )

    async def export(self, visit: Visit) -> Response:
        """Export one of the four tables, as the page shows it: `table` is empty, `intervals`, `groups` or `cohorts`.
        If it is not counted yet, redirect to the page."""
        async with visit.database.transaction() as tx:
            view = (await _read_view(tx, visit)).require_readable()
            query, currency = await _prepare(tx, visit, view)

        async def request(question: QuestionOf[AnswerType]) -> AnalysisResult[AnswerType]:
            answer = self._analysis.answer(visit.organization_id, query, question, deadline_s=DEADLINE_S)
            return await await_answer(answer)

        file: CsvFile | None
        match visit.query.get("table", ""):
            case "groups":
                groups = await request(_rfm_question(view, currency))
                file = groups.map(lambda answer: rfm.group_file(rfm.group_table(visit, view, answer)))
            case "cohorts":
                months = await request(_cohorts_question(view))
                file = months.map(
                    lambda answer: cohorts.cohort_file(cohorts.cohort_table(visit, view, answer, currency))
                )
            case "intervals":
                figures = await request(_customers_question(view))
                file = figures.map(lambda answer: interval_file(interval_table(visit.format, answer)))
            case _:
                figures = await request(_customers_question(view))
                file = figures.map(
                    lambda answer: bucket_file(
                        bucket_table(visit.format, view, answer, unit=_unit(view), currency=currency)
                    )
                )
        return redirect(visit, view.url()) if file is None else export_table(visit, *file)


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
