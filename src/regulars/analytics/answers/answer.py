"""Computes the answer to an analytics question, caches it, and lists the arrays of sales (parts) that it reads."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec
import numpy as np

from regulars.analytics.answers.basket import answer_basket
from regulars.analytics.answers.cohorts import answer_cohorts
from regulars.analytics.answers.customers import answer_customers
from regulars.analytics.answers.lift import answer_lift
from regulars.analytics.answers.product_lines import OTHER_LINES, PRODUCT_LINES, part_of
from regulars.analytics.answers.products import answer_products
from regulars.analytics.answers.rfm import answer_rfm
from regulars.analytics.answers.sales import SUMMED_PARTS, answer_sales, line_key
from regulars.analytics.answers.tickets import RefusedQuestion, Tickets
from regulars.columns import questions
from regulars.columns.engine.cache import CachedColumns, Result
from regulars.columns.engine.calendar import Zone
from regulars.columns.engine.customer_columns import PROFILE
from regulars.columns.engine.loading import RequiredParts
from regulars.columns.engine.sales_runs import PRODUCT_IDS, PRODUCT_NAMES
from regulars.columns.model import ANONYMOUS_SALES, IDENTIFIED_SALES
from regulars.columns.protocol import AnalysisRequest, AnalysisResponse, SegmentQuery
from regulars.conditions import tree
from regulars.kit.db import Tx

_decode: Final = msgspec.msgpack.Decoder(questions.Answer).decode


async def respond_to(
    tx: Tx,
    request: AnalysisRequest,
    question: questions.Question,
    cached: CachedColumns,
    *,
    zone: Zone,
    as_of: datetime,
) -> AnalysisResponse:
    """`as_of` is the time up to which all changes are in the columns."""
    try:
        if isinstance(question, questions.LiftQuestion):
            tickets = await asyncio.to_thread(Tickets, cached, request.query, zone, None)
            return AnalysisResponse(answer=await answer_lift(tx, request.organization_id, tickets, question))
        answer = await asyncio.to_thread(_answer, cached, request.query, question, zone, as_of)
        encoded = np.frombuffer(msgspec.msgpack.encode(answer), np.uint8)
        cached.results.add(_cache_key(cached, request.query, question), Result(encoded))
        return AnalysisResponse(answer=answer)
    except RefusedQuestion as error:
        return AnalysisResponse(fault=str(error))
    except OverflowError:
        return AnalysisResponse(fault="The amounts are too large to be added up.")


def find_answer(
    cached: CachedColumns, query: SegmentQuery, question: questions.Question, as_of: datetime
) -> questions.Answer | None:
    """Find the cached answer to the same question, if no data changed since then; its time becomes `as_of`."""
    if isinstance(question, questions.LiftQuestion):
        return None
    stored = cached.results.find(_cache_key(cached, query, question))
    return None if stored is None else msgspec.structs.replace(_decode(stored.holds.tobytes()), as_of=as_of)


def _cache_key(cached: CachedColumns, query: SegmentQuery, question: questions.ColumnsQuestion) -> tuple[object, ...]:
    """The data is stored in runs, which never change. So an answer depends only on the ids of the runs and on the
    do-not-contact numbers."""
    snapshot = cached.snapshot
    runs = tuple(run.id for run in snapshot.runs)
    return msgspec.msgpack.encode((query, question)), snapshot.epoch, snapshot.next_number, snapshot.consents, runs


def _answer(
    cached: CachedColumns, query: SegmentQuery, question: questions.ColumnsQuestion, zone: Zone, as_of: datetime
) -> questions.Answer:
    tickets = Tickets(cached, query, zone, question.store_ids)
    return _ANSWERS[type(question)](tickets, question, as_of)


_ANSWERS: Final[Mapping[type[questions.ColumnsQuestion], Callable[..., questions.Answer]]] = {
    questions.SalesQuestion: answer_sales,
    questions.CustomersQuestion: answer_customers,
    questions.CohortsQuestion: answer_cohorts,
    questions.RfmQuestion: answer_rfm,
    questions.ProductsQuestion: answer_products,
    questions.BasketQuestion: answer_basket,
}


def add_required(required: RequiredParts, query: SegmentQuery, question: questions.Question) -> RequiredParts:
    """Add the parts that the answer reads."""
    sales = {"customer", "kind", "at_s", *_parts_of(question)}
    if question.store_ids is not None:
        sales.add("store")
    is_of_customers = query.match != tree.All() or isinstance(
        question, questions.CohortsQuestion | questions.RfmQuestion | questions.LiftQuestion
    )
    kinds = (IDENTIFIED_SALES,) if is_of_customers else (IDENTIFIED_SALES, ANONYMOUS_SALES)
    ids = set(PROFILE) if isinstance(question, questions.LiftQuestion) else set()
    return required._replace(customers=required.customers | ids, sales=required.sales | sales, kinds=kinds)


def _parts_of(question: questions.Question) -> set[str]:
    match question:
        case questions.SalesQuestion():
            stores = {"store"} if any(it.kind in {"store", "country"} for it in question.by) else set()
            if question.lines_in is None:
                return {*SUMMED_PARTS, *stores}
            by = map(line_key, question.by)
            keys = {part_of(key) for key in (*by, *(group.key for group in question.filters))}
            return {*PRODUCT_LINES, *OTHER_LINES, *keys, PRODUCT_IDS, PRODUCT_NAMES, *stores}
        case questions.ProductsQuestion():
            keys = {part_of(question.by), *(part_of(group.key) for group in question.filters)}
            names = {PRODUCT_IDS, PRODUCT_NAMES} if question.by.kind == "product" else {PRODUCT_IDS}
            return {*PRODUCT_LINES, *OTHER_LINES, *keys, *names}
        case questions.BasketQuestion():
            keys = {part_of(group.key) for group in question.filters}
            return {*PRODUCT_LINES, *OTHER_LINES, *keys, PRODUCT_IDS, PRODUCT_NAMES}
        case _:
            return {"amount"}
