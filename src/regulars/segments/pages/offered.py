"""What the builder lets people choose from."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from regulars.catalog.find import list_entries
from regulars.catalog.model import Catalog
from regulars.conditions.labels import Names
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.segments.kept import manage
from regulars.segments.kept.model import Segment
from regulars.stores.find import list_stores
from regulars.web.visit import Visit

OFFERED_MAX: Final = 200
COUNTRY_CHARACTERS: Final = 2
# The journeys that a condition about texts may name: id and name.
ListJourneys = Callable[[Tx, UUID], Awaitable[Sequence[tuple[str, str]]]]


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


async def find_offered(tx: Tx, visit: Visit, segment: Segment | None, journeys: ListJourneys | None) -> Offered:
    organization_id = visit.organization_id
    attributes = await list_entries(tx, organization_id, Catalog.ATTRIBUTES, limit=OFFERED_MAX)
    properties = await list_entries(tx, organization_id, Catalog.PRODUCTS, limit=OFFERED_MAX)
    stores = await list_stores(tx, organization_id, after=None, limit=OFFERED_MAX)
    segments = await manage.list_segments(tx, organization_id)
    named = visit.format.locale.territories.items()
    countries = [(code, str(name)) for code, name in named if len(code) == COUNTRY_CHARACTERS and code.isalpha()]
    return Offered(
        attributes=[entry.key for entry in attributes],
        properties=[entry.key for entry in properties],
        stores=[(store.external_id, store.name or store.external_id) for store in stores],
        segments=[(SEGMENT.encode(it.id), it.name) for it in segments if segment is None or it.id != segment.row.id],
        journeys=[] if journeys is None else list(await journeys(tx, organization_id)),
        countries=sorted(countries, key=lambda it: it[1]),
    )
