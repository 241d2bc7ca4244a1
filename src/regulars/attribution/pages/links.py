"""URLs that the attribution pages link to, and names of the origins of texts: a campaign, a journey or a person."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from regulars.analytics.period import Period
from regulars.attribution.model import Origin
from regulars.campaigns.manage import name_campaigns
from regulars.journeys.runs.lists import name_journeys
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, TEXT
from regulars.links.origin_kind import OriginKind
from regulars.web.visit import Visit

PATH: Final = "/analyse/attribution"
TICKETS_PATH: Final = f"{PATH}/tickets"
PEOPLE_NAME: Final = "Texts written by people"
DELETED: Final = "Deleted"
_PATHS: Final = {OriginKind.CAMPAIGN: ("/campaigns", CAMPAIGN), OriginKind.JOURNEY: ("/journeys", JOURNEY)}


class OriginName(NamedTuple):
    """The name and URL of an origin; `url` is empty for persons, and for deleted campaigns and journeys."""

    name: str
    url: str


async def name_origins(tx: Tx, visit: Visit, origins: Iterable[Origin]) -> dict[UUID, OriginName]:
    """The name and URL of each origin, by id."""
    ids: dict[OriginKind, set[UUID]] = {}
    for origin in origins:
        ids.setdefault(origin.kind, set()).add(origin.id)
    name_finders = {OriginKind.CAMPAIGN: name_campaigns, OriginKind.JOURNEY: name_journeys}
    origin_names = {it: OriginName(PEOPLE_NAME, "") for it in ids.get(OriginKind.PERSON, ())}
    for kind, find_names in name_finders.items():
        kind_ids: Collection[UUID] = ids.get(kind, ())
        names = await find_names(tx, visit.organization_id, kind_ids)
        path, id_kind = _PATHS[kind]
        origin_names |= {
            it: OriginName(names[it], visit.url(path, id_kind.encode(it))) if it in names else OriginName(DELETED, "")
            for it in kind_ids
        }
    return origin_names


def encode_origin(origin: Origin) -> str:
    """The id of the campaign or journey as pages show it; empty for a person."""
    return _PATHS[origin.kind][1].encode(origin.id) if origin.kind in _PATHS else ""


def text_url(visit: Visit, text_id: UUID) -> str:
    return visit.url("/messages", TEXT.encode(text_id))


def tickets_url(visit: Visit, period: Period | None, origin: Origin | None = None, **filters: str) -> str:
    """The URL of the list of credited tickets, filtered by origin and by the days on which texts were sent."""
    query = {} if origin is None else {"origin": origin.kind.value, "id": encode_origin(origin), "step": origin.step}
    if period is not None:
        query |= {"from": period.first.isoformat(), "to": period.last.isoformat()}
    return visit.url(TICKETS_PATH) + f"?{urlencode({name: it for name, it in {**query, **filters}.items() if it})}"
