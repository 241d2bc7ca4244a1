"""Answer a question of analytics, and the parts of sales that its answer reads."""

import asyncio
from datetime import datetime

from regulars.conditions import tree
from regulars.kit.db import Tx
from regulars.segments.analysis.engine.answers.basket import answer_basket
from regulars.segments.analysis.engine.answers.cohorts import answer_cohorts
from regulars.segments.analysis.engine.answers.customers import answer_customers
from regulars.segments.analysis.engine.answers.lift import answer_lift
from regulars.segments.analysis.engine.answers.product_lines import OTHER_LINES, PRODUCT_LINES, part_of
from regulars.segments.analysis.engine.answers.products import answer_products
from regulars.segments.analysis.engine.answers.rfm import answer_rfm
from regulars.segments.analysis.engine.answers.sales import SUMMED, answer_sales
from regulars.segments.analysis.engine.answers.tickets import RefusedQuestion, Tickets
from regulars.segments.analysis.engine.cache import CachedColumns
from regulars.segments.analysis.engine.calendar import Zone
from regulars.segments.analysis.engine.customer_columns import PROFILE
from regulars.segments.analysis.engine.loading import RequiredParts
from regulars.segments.analysis.engine.sales_runs import IDS, NAMES
from regulars.segments.analysis.protocol import AnalysisRequest, AnalysisResponse, SegmentQuery
from regulars.segments.analysis.questions import (
    Answer,
    BasketQuestion,
    CohortsQuestion,
    ColumnsQuestion,
    CustomersQuestion,
    LiftQuestion,
    ProductsQuestion,
    Question,
    RfmQuestion,
    SalesQuestion,
)
from regulars.segments.columns.model import ANONYMOUS, OF_CUSTOMERS


async def respond_to(
    tx: Tx, request: AnalysisRequest, question: Question, cached: CachedColumns, zone: Zone
) -> AnalysisResponse:
    try:
        if isinstance(question, LiftQuestion):
            tickets = await asyncio.to_thread(Tickets, cached, request.query, zone, None)
            return AnalysisResponse(answer=await answer_lift(tx, request.organization_id, tickets, question))
        return AnalysisResponse(answer=await asyncio.to_thread(_answer, cached, request.query, question, zone, tx.now))
    except RefusedQuestion as error:
        return AnalysisResponse(fault=str(error))
    except OverflowError:
        return AnalysisResponse(fault="The amounts are too large to be added up.")


def _answer(
    cached: CachedColumns, query: SegmentQuery, question: ColumnsQuestion, zone: Zone, as_of: datetime
) -> Answer:
    tickets = Tickets(cached, query, zone, question.store_ids)
    match question:
        case SalesQuestion():
            return answer_sales(tickets, question, as_of)
        case CustomersQuestion():
            return answer_customers(tickets, question, as_of)
        case CohortsQuestion():
            return answer_cohorts(tickets, question, as_of)
        case RfmQuestion():
            return answer_rfm(tickets, question, as_of)
        case ProductsQuestion():
            return answer_products(tickets, question, as_of)
        case BasketQuestion():
            return answer_basket(tickets, question, as_of)


def add_required(required: RequiredParts, query: SegmentQuery, question: Question) -> RequiredParts:
    """With the parts that the answer reads."""
    sales = {"customer", "kind", "at_s", *_parts_of(question)}
    if question.store_ids is not None:
        sales.add("store")
    is_of_customers = query.match != tree.All() or isinstance(question, CohortsQuestion | RfmQuestion | LiftQuestion)
    kinds = (OF_CUSTOMERS,) if is_of_customers else (OF_CUSTOMERS, ANONYMOUS)
    ids = set(PROFILE) if isinstance(question, LiftQuestion) else set()
    return required._replace(customers=required.customers | ids, sales=required.sales | sales, kinds=kinds)


def _parts_of(question: Question) -> set[str]:
    match question:
        case SalesQuestion():
            return {*SUMMED, "store"} if question.by == "store" else set(SUMMED)
        case ProductsQuestion():
            keys = {part_of(question.by), *(part_of(group.key) for group in question.inside)}
            names = {IDS, NAMES} if question.by.kind == "product" else {IDS}
            return {*PRODUCT_LINES, *OTHER_LINES, *keys, *names}
        case BasketQuestion():
            keys = {part_of(group.key) for group in question.inside}
            return {*PRODUCT_LINES, *OTHER_LINES, *keys, IDS, NAMES}
        case _:
            return {"amount"}
