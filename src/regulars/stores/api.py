"""The API routes `/v1/stores`: create or update a store, list stores, and read one."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from regulars.http.parameters import PAGE_PARAMETERS
from regulars.http.request import ApiResponse, Request
from regulars.http.route import ReadRoute, Route, WriteRoute
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError, InvalidCursor, ReservedExternalId, ValidationError
from regulars.kit.ids import STORE, read_reference
from regulars.kit.json import encode
from regulars.kit.pagination import Page, cut_page, read_cursor, read_limit, scope_of
from regulars.stores.decode import decode_store
from regulars.stores.find import find_store, list_stores
from regulars.stores.model import Store, StoreIn, StoreNotFound, StoreOut, StoreUpsert
from regulars.stores.upsert import upsert_stores


class StorePageOut(Page[StoreOut], frozen=True):
    pass


def prepare_store(request: Request) -> StoreUpsert:
    return decode_store(request.body)


async def run_stores(tx: Tx, organization_id: UUID, requests: Sequence[Request]) -> list[ApiResponse | ApiError]:
    outcomes = await upsert_stores(tx, organization_id, [request.command for request in requests])
    return [
        ApiResponse(201 if outcome.change == "created" else 200, encode(_store_out(outcome.store)))
        for outcome in outcomes
    ]


async def handle_store(tx: Tx, request: Request) -> ApiResponse:
    store = await find_store(tx, request.caller.organization_id, read_reference(STORE, request.references[0]))
    if store is None:
        raise StoreNotFound("No store has this id or external_id.")
    return ApiResponse(200, encode(_store_out(store)))


async def handle_list(tx: Tx, request: Request) -> ApiResponse:
    caller, cursor = request.caller, request.query.get("cursor")
    limit = read_limit(request.query)
    scope = scope_of("stores", {})
    after = None if cursor is None else UUID(read_cursor(caller.secret, scope, cursor)[0])
    stores = await list_stores(tx, caller.organization_id, after=after, limit=limit + 1)
    page, next_cursor = cut_page(
        stores, limit, secret=caller.secret, scope=scope, position_of=lambda store: (str(store.id),)
    )
    return ApiResponse(
        200, encode(StorePageOut([_store_out(store) for store in page], next_cursor is not None, next_cursor))
    )


def _store_out(store: Store) -> StoreOut:
    times = {"created_at": format_timestamp(store.created_at), "updated_at": format_timestamp(store.updated_at)}
    fields = {**msgspec.structs.asdict(store), **times, "id": STORE.encode(store.id)}
    return msgspec.convert(fields, StoreOut, from_attributes=True)


ROUTES: tuple[Route, ...] = (
    WriteRoute(
        path="/v1/stores",
        operation_id="upsertStore",
        tag="Stores",
        summary="Upsert a store",
        description="Creates the store with this `external_id`, or updates it: a field left out is unchanged, null "
        "clears it, an address replaces the one before as a whole. Stores must exist before sales name them.",
        body=StoreIn,
        responses={200: StoreOut, 201: StoreOut},
        errors=(ValidationError, ReservedExternalId),
        examples={
            "store": {
                "external_id": "PARIS-01",
                "name": "Paris Opéra",
                "address": {
                    "address_line1": "12 rue de la Paix",
                    "postal_code": "75002",
                    "locality": "Paris",
                    "country_code": "FR",
                    "administrative_area1": "Île-de-France",
                },
            },
            "only_the_code": {"external_id": "POPUP-7"},
        },
        prepare=prepare_store,
        run=run_stores,
    ),
    ReadRoute(
        path="/v1/stores",
        operation_id="listStores",
        takes_ingest_keys=True,
        tag="Stores",
        summary="List stores",
        description="The organization's stores in the order of their creation, page by page.",
        parameters=PAGE_PARAMETERS,
        responses={200: StorePageOut},
        errors=(ValidationError, InvalidCursor),
        handle=handle_list,
    ),
    ReadRoute(
        path="/v1/stores/{store_id}",
        operation_id="getStore",
        takes_ingest_keys=True,
        tag="Stores",
        summary="Read a store",
        responses={200: StoreOut},
        errors=(StoreNotFound,),
        handle=handle_store,
    ),
)
