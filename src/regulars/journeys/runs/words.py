"""What a text of a journey may say of a customer and the ticket."""

from regulars.journeys.sight.model import PersonRow, SaleRow
from regulars.messaging.template import ATTRIBUTE_PREFIX

_MINOR_UNITS = 100


def values_of(person: PersonRow, sale: SaleRow | None, *, brand: str) -> dict[str, str | None]:
    return {
        "brand": brand,
        "profile.first_name": person.first_name,
        "profile.last_name": person.last_name,
        "store.name": None if sale is None else sale.store_name or sale.store_external_id,
        "ticket.total": None if sale is None else _money(sale.amount_cents, sale.currency),
        **{ATTRIBUTE_PREFIX + key: value for key, value in person.attributes.items()},
    }


def _money(cents: int, currency: str) -> str:
    return f"{cents // _MINOR_UNITS}.{cents % _MINOR_UNITS:02d} {currency}"
