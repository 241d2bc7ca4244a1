"""Declare, anonymise and export the personal data of sales: the customer, fields with free JSON, and collisions
(tickets that were sent again with other content)."""

from collections.abc import AsyncIterator, Collection
from operator import attrgetter
from typing import Final
from uuid import UUID

import msgspec

from regulars.kit.db import Database, Tx
from regulars.kit.json import encode
from regulars.kit.keyset import PageRequest
from regulars.sales.encode import encode_sale
from regulars.sales.model import StoredSale
from regulars.sales.queries import list_sales
from regulars.work.personal import DataSubject, ErasedPeople, PersonalData, export_rows

# Shorter names are not searched in users' notes, because they occur within many other words.
NAME_CHARACTERS_MIN: Final = 4


async def anonymise_sales(
    tx: Tx,
    organization_id: UUID,
    profile_ids: Collection[UUID],
    *,
    references: Collection[str] = (),
    names: Collection[str] = (),
) -> None:
    """Remove these customers from their sales. The sales stay, so that no total changes. Collisions and notes that name
    the customers are deleted.

    `references` are their ids and phone numbers, which are complete values in a collision; `names` are searched in
    users' notes.
    """
    unlinked = await _unlink_profiles(tx, organization_id, profile_ids)
    if unlinked:
        await _delete_collisions(tx, organization_id, unlinked)
        await _erase_notes(tx, organization_id, unlinked)
    if references:
        quoted = [encode(reference).decode() for reference in references]
        sale_ids = await _delete_collisions_that_name(tx, organization_id, references, quoted=quoted)
        await _erase_notes(tx, organization_id, sale_ids)
    if searched := [name for name in (*references, *names) if len(name) >= NAME_CHARACTERS_MIN]:
        await _erase_notes_that_name(tx, organization_id, searched)


async def _erase_notes(tx: Tx, organization_id: UUID, sale_ids: Collection[UUID]) -> None:
    """Erase users' notes about the collisions of these sales, because a note may name the customer."""
    await tx.execute(
        "UPDATE ticket_collision_totals SET note = NULL"
        " WHERE organization_id = %s AND sales_event_id = ANY(%s) AND note IS NOT NULL",
        (organization_id, sorted(sale_ids)),
    )


async def _unlink_profiles(tx: Tx, organization_id: UUID, profile_ids: Collection[UUID]) -> list[UUID]:
    """Remove personal data from the sales of these profiles, and mark the sales; return their ids."""
    return await tx.fetch_column(
        "UPDATE sales_events"
        " SET profile_id = NULL, payments = NULL, loyalty = NULL, metadata = NULL, anonymised_at = %s"
        " WHERE organization_id = %s AND profile_id = ANY(%s) RETURNING id",
        (tx.now, organization_id, sorted(profile_ids)),
    )


async def _delete_collisions(tx: Tx, organization_id: UUID, sale_ids: Collection[UUID]) -> None:
    await tx.execute(
        "DELETE FROM ticket_collisions WHERE organization_id = %s AND sales_event_id = ANY(%s)",
        (organization_id, sorted(sale_ids)),
    )


async def _delete_collisions_that_name(
    tx: Tx, organization_id: UUID, references: Collection[str], *, quoted: Collection[str]
) -> list[UUID]:
    """Delete collisions with one of the references as their customer or in free JSON; return the ids of the sales."""
    return await tx.fetch_column(
        """
        DELETE FROM ticket_collisions
        WHERE organization_id = %(organization_id)s
          AND (attempt ->> 'profile_id' = ANY (%(references)s)
               OR EXISTS (
                   SELECT 1 FROM unnest(%(quoted)s::text[]) AS it (reference)
                   WHERE position(it.reference IN concat(attempt -> 'loyalty', attempt -> 'payments',
                                                         attempt -> 'metadata')) > 0))
        RETURNING sales_event_id
        """,
        {"organization_id": organization_id, "references": sorted(references), "quoted": sorted(quoted)},
    )


async def _erase_notes_that_name(tx: Tx, organization_id: UUID, names: Collection[str]) -> None:
    await tx.execute(
        """
        UPDATE ticket_collision_totals SET note = NULL
        WHERE organization_id = %(organization_id)s AND note IS NOT NULL
          AND EXISTS (SELECT 1 FROM unnest(%(names)s::text[]) AS it (name) WHERE position(it.name IN note) > 0)
        """,
        {"organization_id": organization_id, "names": sorted(names)},
    )


async def _erase(tx: Tx, organization_id: UUID, people: ErasedPeople) -> None:
    numbers = [number for number in people.numbers.values() if number]
    await anonymise_sales(
        tx, organization_id, people.profile_ids, references=[*people.references, *numbers], names=people.names
    )


def export_sales(database: Database, person: DataSubject) -> AsyncIterator[bytes]:
    async def list_rows(tx: Tx, after: UUID, limit: int) -> list[StoredSale]:
        filters = {"profile_id": person.profile_id, "after_id": after}
        return await list_sales(tx, person.organization_id, filters, PageRequest(limit), by_time=False)

    return export_rows(database, list_rows, lambda sale: msgspec.Raw(encode_sale(sale)), position=attrgetter("id"))


PERSONAL_DATA: Final = PersonalData(
    columns=(
        "sales_events.profile_id",
        "sales_events.payments",
        "sales_events.loyalty",
        "sales_events.metadata",
        "ticket_collisions.attempt",
        "ticket_collision_totals.note",
    ),
    not_personal={
        "sales_events.external_id": "the number of a ticket",
        "sales_events.type": "purchase or return",
        "sales_events.currency": "a currency",
        "sales_events.source": "the name of a system",
        "sales_events.line_items": "product data, which stays when a person is erased",
        "ticket_collisions.content_hash": "a hash of a whole ticket, deleted with it",
        "ticket_collision_totals.review": "one of the decisions about a collision",
        "ticket_collision_totals.reviewed_by": "about the retailer's staff, who are no customers",
        "hourly_totals": "sums of all customers",
        "hourly_totals_fills": "how far sums were made",
        "sales_totals": "sums of all customers",
        "sales_totals_fills": "how far sums were made",
        "sale_blocks": "what 500 sales contain together: types, currencies and times",
        "sale_block_builds": "which blocks are to be built",
    },
    erase=_erase,
    exports={"sales_events": export_sales},
)
