"""What the form of a condition tree lets people choose from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from regulars.catalog.entries import list_entries
from regulars.catalog.model import Catalog
from regulars.conditions.labels import Names
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.stores.find import list_stores

OFFERED_MAX: Final = 200
COUNTRY_CHARACTERS: Final = 2
Choices = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    attributes: list[str]
    properties: list[str]
    stores: list[tuple[str, str]]
    segments: list[tuple[str, str]]
    journeys: list[tuple[str, str]]
    countries: list[tuple[str, str]]

    @property
    def names(self) -> Names:
        return Names(stores=dict(self.stores), segments=dict(self.segments), journeys=dict(self.journeys))


async def find_offered(
    tx: Tx, organization_id: UUID, territories: Mapping[str, str], *, segments: Choices = (), journeys: Choices = ()
) -> Offered:
    """`territories` are the names of countries for the reader; segments and journeys are ids with names."""
    attributes = await list_entries(tx, organization_id, Catalog.ATTRIBUTES, PageRequest(OFFERED_MAX))
    properties = await list_entries(tx, organization_id, Catalog.PRODUCTS, PageRequest(OFFERED_MAX))
    stores = await list_stores(tx, organization_id, after=None, limit=OFFERED_MAX)
    named = territories.items()
    countries = [(code, str(name)) for code, name in named if len(code) == COUNTRY_CHARACTERS and code.isalpha()]
    return Offered(
        attributes=[entry.key for entry in attributes],
        properties=[entry.key for entry in properties],
        stores=[(store.external_id, store.name or store.external_id) for store in stores],
        segments=list(segments),
        journeys=list(journeys),
        countries=sorted(countries, key=lambda it: it[1]),
    )
