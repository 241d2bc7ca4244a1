"""The list of tickets, a customer's tickets, and the neighbours of one."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from regulars.kit.clock import format_timestamp
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest, PageRows, Position
from regulars.sales.browse import queries
from regulars.sales.browse.model import CustomerTicket, Filters, TicketLine
from regulars.sales.model import StoredSale

# How many tickets are looked at for one page of a rare filter; then the reader decides whether to look further.
LOOKED_AT_MAX: Final = 20_000
# Of a customer with more tickets, the page says that it shows these.
CUSTOMER_TICKETS_MAX: Final = 2_000
LISTED_CUSTOMER_TICKETS_MAX: Final = 200


async def list_tickets(tx: Tx, organization_id: UUID, filters: Filters, page: PageRequest) -> PageRows[TicketLine]:
    """Tickets the newest first."""
    return await queries.list_tickets(tx, organization_id, filters, page, rows_max=LOOKED_AT_MAX)


def position_of(line: TicketLine) -> Position:
    return format_timestamp(line.occurred_at), str(line.id)


async def list_customer_tickets(tx: Tx, organization_id: UUID, profile_id: UUID) -> list[CustomerTicket]:
    """A customer's tickets, the newest first by their own time."""
    found = await queries.list_customer_tickets(
        tx, organization_id, [profile_id], per_customer_max=CUSTOMER_TICKETS_MAX
    )
    return sorted(found, key=lambda ticket: (ticket.occurred_at, ticket.id), reverse=True)


async def list_tickets_of_customers(
    tx: Tx, organization_id: UUID, profile_ids: Sequence[UUID]
) -> dict[UUID, list[CustomerTicket]]:
    """The newest tickets of each customer in a list."""
    by_customer: dict[UUID, list[CustomerTicket]] = defaultdict(list)
    if profile_ids:
        for ticket in await queries.list_customer_tickets(
            tx, organization_id, profile_ids, per_customer_max=LISTED_CUSTOMER_TICKETS_MAX
        ):
            by_customer[ticket.profile_id].append(ticket)
    return by_customer


async def find_neighbours(tx: Tx, organization_id: UUID, sale: StoredSale) -> tuple[str | None, str | None]:
    """The tickets of the same store that arrived before and after."""
    earlier = await queries.find_neighbour(tx, organization_id, sale.store.id, sale.id, is_earlier=True)
    later = await queries.find_neighbour(tx, organization_id, sale.store.id, sale.id, is_earlier=False)
    return earlier, later
