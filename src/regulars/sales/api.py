"""The API routes `/v1/sales-events`: record one sale or a batch, list sales, and read one."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from regulars.http.batch import Batch, BatchResult, batch_response, body_meta, encode_accepted, items_meta, read_batch
from regulars.http.parameters import CHANGES_PARAMETER, PAGE_PARAMETERS, Parameter
from regulars.http.request import PAYLOAD_MISMATCH, ApiResponse, Caller, EncodeBody, Request
from regulars.http.route import (
    BATCH_REQUEST_ITEMS_MAX,
    BATCH_REQUESTS_PER_STATEMENT_MAX,
    BatchRoute,
    LookUpRoute,
    ReadRoute,
    Route,
    WriteRoute,
)
from regulars.kit import json
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, InvalidCursor, ReservedExternalId
from regulars.kit.ids import SALES_EVENT, ById, read_reference
from regulars.kit.pagination import Page
from regulars.kit.wire import REFERENCE_SCHEMA
from regulars.profiles.errors import ProfileNotFound
from regulars.sales.decode import SaleIn, decode_plain_batch, decode_request, decode_sale
from regulars.sales.encode import (
    SalesEventEnvelope,
    SalesEventOut,
    SalesEventReceipt,
    encode_envelope,
    encode_receipt,
    encode_sale,
)
from regulars.sales.fast_path import FastRecorder
from regulars.sales.listing import CURRENCIES, TYPES, find_sales, list_sales
from regulars.sales.model import (
    OccurredAtInFuture,
    Sale,
    SaleOutcome,
    SalesEventNotFound,
    SalesRequest,
    automation_state,
)
from regulars.sales.record import record_sales
from regulars.stores.model import StoreNotFound

RECORD_SALE = "recordSalesEvent"
RECORD_SALES = "recordSalesEvents"
_RECORD_ERRORS = (ReservedExternalId, OccurredAtInFuture, StoreNotFound, ProfileNotFound)
EXAMPLE = {
    "external_id": "PARIS-01:000123",
    "type": "PURCHASE",
    "occurred_at": "2024-05-01T14:30:00+02:00",
    "store_id": "PARIS-01",
    "profile_id": "customer-42",
    "currency": "EUR",
    "total_amount_cents": 4990,
    "total_discount_cents": 500,
    "total_tax_cents": 832,
    "source": "pos",
    "line_items": [
        {
            "external_id": "1",
            "product": {"external_id": "SKU-1", "name": "Linen shirt", "properties": {"size": "M", "organic": True}},
            "quantity": 1,
            "unit_price_cents": 5490,
            "total_price_cents": 4990,
            "discount_cents": 500,
            "tax_cents": 832,
        }
    ],
}


class SaleBatchIn(msgspec.Struct, frozen=True):
    items: Annotated[list[SaleIn], items_meta("Sales", "/v1/sales-events")]


class SalesEventResult(BatchResult, frozen=True, kw_only=True):
    body: Annotated[msgspec.Raw, body_meta(SalesEventEnvelope, SalesEventReceipt)]


class SalesEventBatchOut(msgspec.Struct, frozen=True):
    results: Annotated[list[SalesEventResult], Meta(description="One result for each item, in the same order.")]


class SalesEventPage(Page[SalesEventOut], frozen=True):
    pass


# The time by which a sale may be in the future, and the recorder of the fast path, if there is one.
_Means = tuple[timedelta, FastRecorder | None]


async def _run(
    tx: Tx, organization_id: UUID, requests: Sequence[Request], *, means: _Means
) -> list[ApiResponse | ApiError]:
    return await _record(tx, organization_id, [(request.command, request.caller) for request in requests], means)


async def _record(
    tx: Tx, organization_id: UUID, sales: Sequence[tuple[Sale, Caller]], means: _Means
) -> list[ApiResponse | ApiError]:
    """Record the sales, each sent by a caller, by several statements; return the response to each."""
    tolerance, recorder = means
    outcomes = await record_sales(tx, organization_id, [sale for sale, _ in sales], tolerance=tolerance)
    if recorder is not None:
        recorder.known.remember_published_keys(tx, organization_id, outcomes)
    return [
        outcome if isinstance(outcome, ApiError) else _respond(outcome, tx, caller)
        for outcome, (_, caller) in zip(outcomes, sales, strict=True)
    ]


def _respond(outcome: SaleOutcome, tx: Tx, caller: Caller) -> ApiResponse:
    state = automation_state(outcome.sale, is_new=outcome.is_new, now=tx.now)
    encode = encode_receipt if caller.is_ingest_only and not _has_only_sent_data(outcome) else encode_envelope
    body = encode(outcome.sale, state)
    return ApiResponse(201 if outcome.is_new else 200, body, (PAYLOAD_MISMATCH,) if outcome.differs else ())


def _has_only_sent_data(outcome: SaleOutcome) -> bool:
    """Whether the full response has only data that the caller sent. If the caller named the customer by canonical id,
    the response would also have the customer's external_id."""
    return outcome.is_new and not isinstance(outcome.sale.ticket.profile, ById)


def _prepare_batch(request: Request) -> Batch[Sale]:
    sales = decode_plain_batch(request.body)
    if sales is not None and 0 < len(sales) <= BATCH_REQUEST_ITEMS_MAX:
        return Batch(sales)
    return read_batch(request.body, decode_sale)


async def _run_batch(
    tx: Tx, organization_id: UUID, requests: Sequence[Request], *, means: _Means
) -> list[ApiResponse | ApiError]:
    responses: list[ApiResponse | ApiError] = []
    for request in requests:
        batch: Batch[Sale] = request.command
        sales = [(sale, request.caller) for sale in batch.accepted]
        recorded = iter(await _record(tx, organization_id, sales, means))
        in_order = [item if isinstance(item, ApiError) else next(recorded) for item in batch.items]
        responses.append(batch_response(in_order, request))
    return responses


async def _record_batch_quickly(
    organization_id: UUID, requests: Sequence[Request], *, recorder: FastRecorder
) -> list[EncodeBody | None]:
    """Record batch requests by the fast path, which handles a request if all its sales are new and ordinary; return
    None for any other request, which `_run_batch` then handles."""
    return await recorder.record_requests(
        organization_id, [_to_sales_request(request) for request in requests], status=200
    )


def _to_sales_request(request: Request) -> SalesRequest:
    batch: Batch[Sale] = request.command
    items, sales = batch.items, batch.accepted

    def join(bodies: Iterable[bytes]) -> bytes:
        if len(sales) == len(items):
            return encode_accepted(201, bodies)
        recorded = iter(bodies)
        responses = [item if isinstance(item, ApiError) else ApiResponse(201, next(recorded)) for item in items]
        return batch_response(responses, request).body

    return SalesRequest(sales, request.key, request.fingerprint, join, request.extra_headers)


async def _list(tx: Tx, request: Request) -> ApiResponse:
    caller = request.caller
    sales, has_more, cursor = await list_sales(tx, caller.organization_id, request.query, secret=caller.secret)
    data = [msgspec.Raw(encode_sale(sale)) for sale in sales]
    return ApiResponse(200, json.encode(Page(data, has_more, cursor)))


async def _find_by_references(
    tx: Tx, organization_id: UUID, requests: Sequence[Request]
) -> list[ApiResponse | ApiError]:
    references = [read_reference(SALES_EVENT, request.references[0]) for request in requests]
    sales = await find_sales(tx, organization_id, references)
    return [
        ApiResponse(200, encode_sale(sales[reference]))
        if reference in sales
        else SalesEventNotFound("The reference names no sales event of this organization.")
        for reference in references
    ]


def _filter(name: str, description: str, **schema: Any) -> Parameter:
    return Parameter(name, {"type": "string", **schema}, description)


PARAMETERS = (
    *PAGE_PARAMETERS,
    CHANGES_PARAMETER,
    _filter("store_id", "Sales of this store: its external_id or canonical id.", **REFERENCE_SCHEMA),
    _filter("profile_id", "Sales of this customer: external_id or canonical id.", **REFERENCE_SCHEMA),
    _filter("type", "Purchases or returns only.", enum=list(TYPES)),
    _filter("currency", "Sales in this currency only.", enum=list(CURRENCIES)),
    _filter("external_id", "The sale with this external_id.", **REFERENCE_SCHEMA),
    _filter("occurred_from", "Business date not before this; orders the list by business date.", format="date-time"),
    _filter("occurred_to", "Business date before this; orders the list by business date.", format="date-time"),
    _filter("created_from", "Recorded not before this.", format="date-time"),
    _filter("created_to", "Recorded before this.", format="date-time"),
)


def routes(*, tolerance: timedelta, recorder: FastRecorder | None = None) -> tuple[Route, ...]:
    """Declare the routes. A sale may be up to `tolerance` in the future. `recorder` records a batch in one statement;
    without it, every sale takes several statements."""
    return (
        WriteRoute(
            path="/v1/sales-events",
            operation_id=RECORD_SALE,
            tag="Sales events",
            summary="Record one transaction",
            description="Keyed on external_id: the first sale stays, and sending it again returns 200 with it.",
            body=SaleIn,
            responses={201: SalesEventEnvelope, 200: SalesEventEnvelope},
            receipts={201: SalesEventReceipt, 200: SalesEventReceipt},
            errors=_RECORD_ERRORS,
            response_headers={
                200: {"X-Payload-Mismatch": "`true` when the ticket sent differs from the one recorded."}
            },
            examples={"purchase": EXAMPLE},
            prepare=decode_request,
            run=partial(_run, means=(tolerance, recorder)),
            run_fast=None if recorder is None else recorder.record,
            run_fast_shared=None if recorder is None else recorder.record_shared,
        ),
        BatchRoute(
            path="/v1/sales-events/batch",
            operation_id=RECORD_SALES,
            tag="Sales events",
            summary="Record up to 500 transactions",
            description="Each item is decided separately; the response has a status and a body for each, in order.",
            body=SaleBatchIn,
            responses={200: SalesEventBatchOut},
            examples={"two tickets": {"items": [EXAMPLE, {**EXAMPLE, "external_id": "PARIS-01:000124"}]}},
            prepare=_prepare_batch,
            run=partial(_run_batch, means=(tolerance, recorder)),
            run_fast=None if recorder is None else partial(_record_batch_quickly, recorder=recorder),
            fast_status=200,
            writes_per_batch_max=BATCH_REQUESTS_PER_STATEMENT_MAX,
            retries_singly=True,
        ),
        ReadRoute(
            path="/v1/sales-events",
            operation_id="listSalesEvents",
            tag="Sales events",
            summary="List transactions",
            parameters=PARAMETERS,
            responses={200: SalesEventPage},
            errors=(InvalidCursor, StoreNotFound, ProfileNotFound),
            handle=_list,
        ),
        LookUpRoute(
            path="/v1/sales-events/{sales_event_id}",
            operation_id="getSalesEvent",
            tag="Sales events",
            summary="Read one transaction",
            responses={200: SalesEventOut},
            errors=(SalesEventNotFound,),
            find=_find_by_references,
        ),
    )
