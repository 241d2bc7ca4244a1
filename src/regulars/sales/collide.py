"""Ticket collisions: another ticket under an id that is taken. The first stays; the attempt is kept to look at."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import msgspec

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, STORE, ByExternalId, Kind, Reference
from regulars.kit.json import encode
from regulars.sales import queries
from regulars.sales.model import COLLISIONS_PER_SALE_MAX, Sale, StoredSale, without_person


async def note_collisions(tx: Tx, organization_id: UUID, attempts: Sequence[tuple[Sale, StoredSale]]) -> None:
    """Keep at most ten distinct attempts per sale, and count all of them."""
    if not attempts:
        return
    totals = Counter(stored.id for _, stored in attempts)
    await queries.count_collisions(tx, organization_id, sorted(totals.items()))
    by_sale: dict[UUID, Counter[bytes]] = {}
    for sale, stored in attempts:
        # An erased person must not be brought back by a till's retry; sales that were made anonymous before they were
        # marked look like any anonymous one. Nothing would lead from a person to an attempt on such a sale, so what
        # may tell of one is not stored with it.
        kept = without_person(sale) if stored.profile is None else sale
        by_sale.setdefault(stored.id, Counter())[describe(kept)] += 1
    # A statement does not see its own rows: the bound of ten holds only if each sale has one attempt in it. More rounds
    # than ten could keep nothing new.
    for turn in range(COLLISIONS_PER_SALE_MAX):
        together = [
            (identifier, hashlib.sha256(content).digest(), content, times)
            for identifier, contents in by_sale.items()
            for content, times in list(contents.items())[turn : turn + 1]
        ]
        if not together:
            break
        await queries.insert_collisions(tx, organization_id, together)
    await queries.reopen_collisions(tx, organization_id, by_sale)


def describe(sale: Sale) -> bytes:
    """The attempt as a request would say it, without unknown fields; equal content gives equal bytes."""
    return encode(
        {
            "external_id": sale.external_id,
            "type": sale.type,
            "occurred_at": format_timestamp(sale.occurred_at),
            "store_id": _spell(STORE, sale.store),
            "profile_id": None if sale.profile is None else _spell(PROFILE, sale.profile),
            "currency": sale.currency,
            "total_amount_cents": sale.total_amount_cents,
            "total_discount_cents": sale.total_discount_cents,
            "total_tax_cents": sale.total_tax_cents,
            "source": sale.source,
            "payments": _raw(sale.payments),
            "loyalty": _raw(sale.loyalty),
            "metadata": _raw(sale.metadata),
            "line_items": _raw(sale.line_items),
        }
    )


def _spell(kind: Kind, reference: Reference) -> str | None:
    if isinstance(reference, ByExternalId):
        return reference.external_id
    return None if reference.id is None else kind.encode(reference.id)


def _raw(text: bytes | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text)
