"""Encode a stored sale as the bytes of a response. The same sale always gives the same bytes."""

from datetime import datetime
from functools import lru_cache
from typing import Annotated, NamedTuple, get_args
from uuid import UUID

import msgspec
from msgspec import Meta

from regulars.kit.clock import format_timestamp
from regulars.kit.ids import PROFILE, SALES_EVENT, STORE
from regulars.kit.json import encode
from regulars.kit.wire import FREE_JSON_SCHEMA
from regulars.sales.model import Sale, StoredSale
from regulars.work.facts import AutomationOut, AutomationState

UNKNOWN_PROFILE = PROFILE.encode(UUID(int=0))
# `split_at_profile` splits an encoded sale at the id after this text.
_BEFORE_PROFILE_ID = b'"profile":{"id":"'
_UNKNOWN_PROFILE_TEXT = _BEFORE_PROFILE_ID + UNKNOWN_PROFILE.encode()
_NULL = msgspec.Raw(b"null")
_FREE_META = Meta(description="As it was sent, or null.", extra_json_schema=FREE_JSON_SCHEMA)


class ReferenceOut(msgspec.Struct, frozen=True, gc=False):
    id: str
    external_id: str


class ProductOut(msgspec.Struct, frozen=True):
    """What was sold."""

    external_id: str | None
    name: str | None
    properties: Annotated[dict[str, bool | int | float | str], Meta(description="As sent; empty when there are none.")]


class LineItemOut(msgspec.Struct, frozen=True):
    """A line of a ticket, as `LineItem` is stored."""

    external_id: str | None
    product: ProductOut | None
    quantity: float
    unit: str | None
    unit_price_cents: int | None
    total_price_cents: int
    discount_cents: int | None
    tax_cents: int | None


class SalesEventOut(msgspec.Struct, frozen=True, gc=False):
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
    loyalty: Annotated[msgspec.Raw, _FREE_META]
    payments: Annotated[msgspec.Raw, _FREE_META]
    metadata: Annotated[msgspec.Raw, _FREE_META]
    source: str | None
    line_items: list[LineItemOut]
    created_at: str


class SalesEventEnvelope(msgspec.Struct, frozen=True, gc=False):
    sales_event: SalesEventOut
    automation: AutomationOut


class SalesEventReceipt(msgspec.Struct, frozen=True, gc=False):
    """A sale by its ids only: it was stored before, and the caller may not read its content."""

    sales_event: ReferenceOut
    automation: AutomationOut


_AUTOMATION = {state: AutomationOut(state) for state in get_args(AutomationState)}


def encode_envelope(sale: StoredSale, state: AutomationState) -> bytes:
    return encode(SalesEventEnvelope(to_wire(sale), _AUTOMATION[state]))


def encode_receipt(sale: StoredSale, state: AutomationState) -> bytes:
    reference = ReferenceOut(SALES_EVENT.encode(sale.id), sale.ticket.external_id)
    return encode(SalesEventReceipt(reference, _AUTOMATION[state]))


def encode_sale(sale: StoredSale) -> bytes:
    return encode(to_wire(sale))


def encode_new(
    sale: Sale,
    identifier: str,
    *,
    store: ReferenceOut,
    profile: ReferenceOut | None,
    created_at: datetime,
    state: AutomationState,
) -> bytes:
    """Encode the response to a sale that is about to be stored under this canonical id."""
    return encode(SalesEventEnvelope(_to_wire(sale, identifier, store, profile, created_at), _AUTOMATION[state]))


class SplitResponse(NamedTuple):
    """A response for which the customer's canonical id is not known yet: the id is inserted between head and tail.

    Without a tail, the head is the whole response.
    """

    head: bytes
    tail: bytes | None

    def join(self, profile: str | None) -> bytes:
        """Return the whole response, with the customer's canonical id."""
        if self.tail is None or profile is None:
            return self.head
        return b"".join((self.head, profile.encode(), self.tail))


def split_at_profile(envelope: bytes) -> SplitResponse:
    """Split a response that was encoded with UNKNOWN_PROFILE at that id.

    The first match is the profile, because quotes in texts are escaped and the caller's free JSON comes after it.
    """
    head, _, tail = envelope.partition(_UNKNOWN_PROFILE_TEXT)
    return SplitResponse(head + _BEFORE_PROFILE_ID, tail)


def to_wire(sale: StoredSale) -> SalesEventOut:
    profile = sale.profile
    return _to_wire(
        sale.ticket,
        SALES_EVENT.encode(sale.id),
        ReferenceOut(STORE.encode(sale.store.id), sale.store.external_id),
        None if profile is None else ReferenceOut(PROFILE.encode(profile.id), profile.external_id),
        sale.created_at,
    )


def _to_wire(
    ticket: Sale, identifier: str, store: ReferenceOut, profile: ReferenceOut | None, created_at: datetime
) -> SalesEventOut:
    return SalesEventOut(
        identifier,
        ticket.external_id,
        ticket.type,
        format_timestamp(ticket.occurred_at),
        store,
        profile,
        ticket.currency,
        ticket.total_amount_cents,
        ticket.total_discount_cents,
        ticket.total_tax_cents,
        _NULL if ticket.loyalty is None else msgspec.Raw(ticket.loyalty),
        _NULL if ticket.payments is None else msgspec.Raw(ticket.payments),
        _NULL if ticket.metadata is None else msgspec.Raw(ticket.metadata),
        ticket.source,
        msgspec.Raw(ticket.line_items),  # type: ignore[arg-type]  # encoded already
        _format_created_at(created_at),
    )


@lru_cache(maxsize=16)
def _format_created_at(moment: datetime) -> str:
    """Format the time; cached, because all sales of a batch have the same `created_at`."""
    return format_timestamp(moment)
