"""Purchases of customers who got a text: copies of recent tickets of their own country, in its currency."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.demo.chain import SHOPS
from regulars.kit.ids import ByExternalId, ById, Reference
from regulars.sales.model import Sale

_COUNTRIES: Final[dict[Reference, str]] = {ByExternalId(shop.external_id): shop.country for shop in SHOPS}
SPREAD_MINUTES: Final = 600


class Buyer(NamedTuple):
    """A customer and their country."""

    profile_id: UUID
    country: str


def copy_tickets(tickets: Sequence[Sale], buyers: Iterable[Buyer], *, prefix: str, at: datetime) -> list[Sale]:
    """A ticket at this time for each buyer; none for a buyer of whose country there is no ticket. The ids of the copies
    begin with the prefix."""
    by_country: dict[str, list[Sale]] = defaultdict(list)
    for ticket in tickets:
        by_country[_COUNTRIES[ticket.store]].append(ticket)
    copies: list[Sale] = []
    for number, buyer in enumerate(buyers):
        tickets_of_country = by_country.get(buyer.country)
        if tickets_of_country:
            copies.append(
                msgspec.structs.replace(
                    tickets_of_country[number % len(tickets_of_country)],
                    external_id=f"{prefix}-{len(copies) + 1:04d}",
                    occurred_at=at,
                    profile=ById(buyer.profile_id),
                )
            )
    return copies


def spread_over_hours(sales: Sequence[Sale]) -> list[Sale]:
    """The sales at times of the next hours: soon enough after a text to be credited to it."""
    replace = msgspec.structs.replace
    return [
        replace(sale, occurred_at=sale.occurred_at + timedelta(minutes=number % SPREAD_MINUTES))
        for number, sale in enumerate(sales)
    ]
