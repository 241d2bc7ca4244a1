"""The list of tickets, a customer's tickets, and the neighbours of one."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.kit.db import Tx
from regulars.sales.browse import queries
from regulars.sales.browse.model import CustomerTicket, Filters, Position, TicketLine
from regulars.sales.model import StoredSale

# How many tickets are looked at for one page of a rare filter; then the reader decides whether to look further.
LOOKED_AT_MAX: Final = 20_000
# Of a customer with more tickets, the page says that it shows these.
CUSTOMER_TICKETS_MAX: Final = 2_000
LISTED_CUSTOMER_TICKETS_MAX: Final = 200


class Stretch(NamedTuple):
    """What was found, and where the look ended if it ended before the list did."""

    lines: list[TicketLine]
    ended_at: tuple[str, ...] | None


async def list_tickets(
    tx: Tx,
    organization_id: UUID,
    filters: Filters,
    *,
    beyond: tuple[str, ...] | None,
    is_backward: bool = False,
    limit: int,
) -> Stretch:
    """Tickets the newest first."""
    position = None if beyond is None else Position(parse_timestamp(beyond[0]), UUID(beyond[1]))
    lines = await queries.list_tickets(
        tx,
        organization_id,
        filters,
        beyond=position,
        is_backward=is_backward,
        looked_at_max=LOOKED_AT_MAX,
        limit=limit,
    )
    if len(lines) >= limit or is_backward:
        return Stretch(lines, None)
    end = await queries.find_end_of_window(tx, organization_id, filters, beyond=position, looked_at_max=LOOKED_AT_MAX)
    return Stretch(lines, None if end is None else (format_timestamp(end.occurred_at), str(end.id)))


def position_of(line: TicketLine) -> tuple[str, ...]:
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
