"""From a stored sale to the bytes of an answer. The same sale always gives the same bytes."""

from datetime import datetime
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from regulars.kit.clock import format_timestamp
from regulars.kit.ids import PROFILE, SALES_EVENT, STORE
from regulars.kit.json import encode
from regulars.sales.model import AutomationState, StoredSale
from regulars.stores.model import StoreRef

_NULL = msgspec.Raw(b"null")
_FREE = Meta(description="As it was sent, or null.", extra_json_schema={"type": ["object", "array", "null"]})
_LINES = Meta(extra_json_schema={"type": "array", "items": {"$ref": "#/components/schemas/LineItem"}})


class ReferenceOut(msgspec.Struct, frozen=True):
    id: str
    external_id: str


class SalesEventOut(msgspec.Struct, frozen=True):
    id: Annotated[str, Meta(description="Canonical id, `evt_` prefix.")]
    external_id: str
    type: str
    occurred_at: str
    store: ReferenceOut
    profile: ReferenceOut | None
    currency: str
    total_amount_cents: int
    total_discount_cents: int
    total_tax_cents: int | None
    loyalty: Annotated[msgspec.Raw, _FREE]
    payments: Annotated[msgspec.Raw, _FREE]
    metadata: Annotated[msgspec.Raw, _FREE]
    source: str | None
    line_items: Annotated[msgspec.Raw, _LINES]
    created_at: str


class AutomationOut(msgspec.Struct, frozen=True):
    state: AutomationState


class SalesEventEnvelope(msgspec.Struct, frozen=True):
    sales_event: SalesEventOut
    automation: AutomationOut


def encode_envelope(sale: StoredSale, state: AutomationState) -> bytes:
    return encode(SalesEventEnvelope(show(sale), AutomationOut(state)))


def encode_sale(sale: StoredSale) -> bytes:
    return encode(show(sale))


def show(sale: StoredSale) -> SalesEventOut:
    profile = sale.profile
    return SalesEventOut(
        SALES_EVENT.encode(sale.id),
        sale.external_id,
        sale.type,
        format_timestamp(sale.occurred_at),
        _show_store(sale.store),
        None if profile is None else ReferenceOut(PROFILE.encode(profile.id), profile.external_id),
        sale.currency,
        sale.total_amount_cents,
        sale.total_discount_cents,
        sale.total_tax_cents,
        _raw(sale.loyalty),
        _raw(sale.payments),
        _raw(sale.metadata),
        sale.source,
        msgspec.Raw(sale.line_items),
        _format_created_at(sale.created_at),
    )


@lru_cache(maxsize=16)
def _format_created_at(moment: datetime) -> str:
    """A whole batch shares one moment."""
    return format_timestamp(moment)


@lru_cache(maxsize=1024)
def _show_store(store: StoreRef) -> ReferenceOut:
    """Many sales share a store, and what a store is called never changes."""
    return ReferenceOut(STORE.encode(store.id), store.external_id)


def _raw(text: bytes | None) -> msgspec.Raw:
    return _NULL if text is None else msgspec.Raw(text)
