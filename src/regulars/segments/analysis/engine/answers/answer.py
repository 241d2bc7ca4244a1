"""Answer a question of analytics, and the parts of sales that its answer reads."""

from datetime import datetime

from regulars.segments.analysis.engine.answers.cohorts import answer_cohorts
from regulars.segments.analysis.engine.answers.customers import answer_customers
from regulars.segments.analysis.engine.answers.rfm import answer_rfm
from regulars.segments.analysis.engine.answers.tickets import RefusedQuestion, Tickets
from regulars.segments.analysis.engine.cache import CachedColumns
from regulars.segments.analysis.engine.calendar import Zone
from regulars.segments.analysis.engine.loading import RequiredParts
from regulars.segments.analysis.protocol import AnalysisResponse, SegmentQuery
from regulars.segments.analysis.questions import (
    Answer,
    BasketQuestion,
    CohortsQuestion,
    CustomersQuestion,
    ProductsQuestion,
    Question,
    RfmQuestion,
    SalesQuestion,
)


def respond_to(
    cached: CachedColumns, query: SegmentQuery, question: Question, zone: Zone, as_of: datetime
) -> AnalysisResponse:
    try:
        return AnalysisResponse(answer=_answer(Tickets(cached, query, zone, question.store_ids), question, as_of))
    except RefusedQuestion as error:
        return AnalysisResponse(fault=str(error))
    except OverflowError:
        return AnalysisResponse(fault="The amounts are too large to be added up.")


def _answer(tickets: Tickets, question: Question, as_of: datetime) -> Answer:
    match question:
        case CustomersQuestion():
            return answer_customers(tickets, question, as_of)
        case CohortsQuestion():
            return answer_cohorts(tickets, question, as_of)
        case RfmQuestion():
            return answer_rfm(tickets, question, as_of)
        case SalesQuestion() | ProductsQuestion() | BasketQuestion():
            raise RefusedQuestion("The columns do not have all tickets yet.")


def add_required(required: RequiredParts, question: Question) -> RequiredParts:
    """With the parts that the answer reads."""
    stores = set() if question.store_ids is None else {"store"}
    return required._replace(sales=required.sales | stores | {"customer", "kind", "at_s", "amount"})
