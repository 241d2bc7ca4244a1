"""Record ticket collisions: a caller sends a ticket whose id is stored already with other content. The stored ticket
stays, and the new one (the attempt) is stored for review."""

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import msgspec

from regulars.kit.arrays import Bigints, Blobs, Ids, Jsons
from regulars.kit.clock import format_timestamp
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, STORE, ByExternalId, IdKind, Reference
from regulars.kit.json import encode
from regulars.sales.model import ATTEMPTS_PER_SALE_MAX, Sale, StoredSale, without_person


async def record_collisions(tx: Tx, organization_id: UUID, attempts: Sequence[tuple[Sale, StoredSale]]) -> None:
    """Store up to ten attempts per sale that differ from each other, and count all attempts."""
    if not attempts:
        return
    totals = Counter(stored.id for _, stored in attempts)
    await _count_collisions(tx, organization_id, sorted(totals.items()))
    by_sale: dict[UUID, Counter[bytes]] = {}
    for sale, stored in attempts:
        # An attempt must not bring back the data of an erased person, whose sale is anonymous and which a later erasure
        # would not find. Sales that an older release anonymised are not marked, so all attempts for anonymous sales are
        # stored without personal data.
        content = without_person(sale) if stored.profile is None else sale
        by_sale.setdefault(stored.id, Counter())[encode_attempt(content)] += 1
    # A statement does not see the rows that it inserts, so the limit of ten holds only if each statement has at most
    # one attempt per sale. An eleventh statement could store nothing new.
    for number in range(ATTEMPTS_PER_SALE_MAX):
        attempts_of_statement = [
            (identifier, hashlib.sha256(content).digest(), content, times)
            for identifier, contents in by_sale.items()
            for content, times in list(contents.items())[number : number + 1]
        ]
        if not attempts_of_statement:
            break
        await _insert_collisions(tx, organization_id, attempts_of_statement)
    await _reopen_collisions(tx, organization_id, by_sale)


def encode_attempt(sale: Sale) -> bytes:
    """Encode the attempt in the form of a request, without unknown fields; equal content gives equal bytes."""
    return encode(
        {
            "external_id": sale.external_id,
            "type": sale.type,
            "occurred_at": format_timestamp(sale.occurred_at),
            "store_id": _reference_text(STORE, sale.store),
            "profile_id": None if sale.profile is None else _reference_text(PROFILE, sale.profile),
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


def _reference_text(kind: IdKind, reference: Reference) -> str | None:
    if isinstance(reference, ByExternalId):
        return reference.external_id
    return None if reference.id is None else kind.encode(reference.id)


def _raw(text: bytes | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text)


_COLLISIONS: Final = Columns(sales_event_id=Ids, content_hash=Blobs, attempt=Jsons, times_seen=Bigints)
_INSERT_COLLISIONS: Final = _COLLISIONS.write(
    "INSERT INTO ticket_collisions AS c (organization_id, first_seen_at, last_seen_at, {columns})"
    " SELECT %(organization)s, %(now)s, %(now)s, it.* FROM {rows}"
    " WHERE EXISTS (SELECT FROM ticket_collisions k WHERE k.organization_id = %(organization)s"
    "   AND k.sales_event_id = it.sales_event_id AND k.content_hash = it.content_hash)"
    " OR (SELECT count(*) FROM ticket_collisions k WHERE k.organization_id = %(organization)s"
    "   AND k.sales_event_id = it.sales_event_id) < %(attempts_max)s"
    " ORDER BY it.sales_event_id, it.content_hash"
    " ON CONFLICT (organization_id, sales_event_id, content_hash)"
    " DO UPDATE SET times_seen = c.times_seen + excluded.times_seen, last_seen_at = excluded.last_seen_at"
)


async def _insert_collisions(
    tx: Tx, organization_id: UUID, collisions: Sequence[tuple[UUID, bytes, bytes, int]]
) -> None:
    """Store attempts of (sale, content hash, content, times), one per sale. A sale with ten stored attempts gets no
    more; only its total is counted."""
    values = {"organization": organization_id, "now": tx.now, "attempts_max": ATTEMPTS_PER_SALE_MAX}
    await tx.execute(_INSERT_COLLISIONS, {**values, **_COLLISIONS.of_tuples(collisions)})


async def _count_collisions(tx: Tx, organization_id: UUID, times: Sequence[tuple[UUID, int]]) -> None:
    """Add to the totals of (sale, times), each sale once; the lock on a total serialises the writers of its sale."""
    await tx.execute(
        "INSERT INTO ticket_collision_totals AS t (organization_id, sales_event_id, times_seen, last_seen_at)"
        " SELECT %s, i.sale, i.times, %s FROM unnest(%s::uuid[], %s::bigint[]) AS i (sale, times) ORDER BY i.sale"
        " ON CONFLICT (organization_id, sales_event_id)"
        " DO UPDATE SET times_seen = t.times_seen + excluded.times_seen, last_seen_at = excluded.last_seen_at",
        (organization_id, tx.now, [sale for sale, _ in times], [count for _, count in times]),
    )


async def _reopen_collisions(tx: Tx, organization_id: UUID, sale_ids: Collection[UUID]) -> None:
    """Reopen reviewed collisions for which this transaction stored an attempt with new content."""
    await tx.execute(
        "UPDATE ticket_collision_totals AS t SET reviewed_at = NULL, review = NULL"
        " WHERE t.organization_id = %(organization)s AND t.sales_event_id = ANY(%(sales)s)"
        " AND t.reviewed_at IS NOT NULL AND EXISTS (SELECT FROM ticket_collisions k"
        "   WHERE k.organization_id = %(organization)s"
        "   AND k.sales_event_id = t.sales_event_id AND k.first_seen_at = %(now)s)",
        {"organization": organization_id, "sales": sorted(sale_ids), "now": tx.now},
    )
