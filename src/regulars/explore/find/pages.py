"""The search over customers, phone numbers, tickets, stores, segments, journeys and campaigns: an exact id redirects to
the page of its object, any other text shows a list of matching names."""

from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.campaigns.manage import list_campaigns, name_campaigns
from regulars.campaigns.model import CampaignRow
from regulars.consent.find import search_subscription
from regulars.explore.customers import listing
from regulars.journeys.manage import list_journeys
from regulars.journeys.model import JourneyRow
from regulars.journeys.runs.lists import name_journeys
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, PROFILE, SEGMENT, STORE, SUBSCRIPTION, read_reference
from regulars.kit.keyset import PageRequest
from regulars.profiles.model import Profile
from regulars.profiles.search import search_by_name
from regulars.sales.listing import find_sale
from regulars.segments.saved.manage import find_names, list_segments
from regulars.segments.saved.model import SegmentRow
from regulars.stores.find import find_store, list_by_name
from regulars.stores.model import Store
from regulars.web.access import Action
from regulars.web.render import redirect, render
from regulars.web.route import Page
from regulars.web.visit import Visit

PATH: Final = "/search"
TEXT_CHARACTERS_MAX: Final = 255
# Objects of each kind that are shown, and journeys and campaigns whose names are searched.
SHOWN_MAX: Final = 10
SEARCHED_MAX: Final = 1_000


class SearchResults(NamedTuple):
    customers: list[Profile]
    has_more_customers: bool
    stores: list[Store]
    segments: list[SegmentRow]
    journeys: list[JourneyRow]
    campaigns: list[CampaignRow]


async def search(visit: Visit) -> Response:
    text = visit.query.get("q", "").strip()[:TEXT_CHARACTERS_MAX]
    if not text:
        return _show(visit, "", None)
    async with visit.database.reading() as tx:
        target = await find_exactly(tx, visit, text)
        if target is not None:
            return redirect(visit, target)
        results = await _find_by_text(tx, visit, text)
    return _show(visit, text, results)


def _show(visit: Visit, text: str, results: SearchResults | None) -> Response:
    return render(
        visit,
        "explore/search.html",
        text=text,
        found=results,
        customer_id=PROFILE.encode,
        segment_id=SEGMENT.encode,
        journey_id=JOURNEY.encode,
        campaign_id=CAMPAIGN.encode,
    )


async def find_exactly(tx: Tx, visit: Visit, text: str) -> str | None:
    """The address of the page of the object with this id or phone number, if there is exactly one."""
    customers = await listing.find_exactly(tx, visit, text)
    if len(customers) == 1:
        return visit.url("/customers", PROFILE.encode(customers[0].id))
    if customers:
        # Several customers share the number: the page lists them.
        return None
    sale = await find_sale(tx, visit.organization_id, text)
    if sale is not None:
        return visit.url("/tickets", sale.ticket.external_id)
    store = await find_store(tx, visit.organization_id, read_reference(STORE, text))
    if store is not None:
        return visit.url("/stores", store.external_id)
    journey = JOURNEY.decode(text)
    if journey is not None and await name_journeys(tx, visit.organization_id, [journey]):
        return visit.url("/journeys", text)
    campaign = CAMPAIGN.decode(text)
    if campaign is not None and await name_campaigns(tx, visit.organization_id, [campaign]):
        return visit.url("/campaigns", text)
    segment = SEGMENT.decode(text) if visit.may(Action.READ_SEGMENTS) else None
    if segment is not None and await find_names(tx, visit.organization_id, [segment]):
        return visit.url("/segments", text)
    number = await search_subscription(
        tx, visit.organization_id, text, secret=visit.organization.secret, sees_personal=visit.sees_personal
    )
    return None if number is None else visit.url("/consent/numbers", SUBSCRIPTION.encode(number.id))


async def _find_by_text(tx: Tx, visit: Visit, text: str) -> SearchResults:
    customers: list[Profile] = []
    if visit.sees_personal:
        customers = await listing.find_exactly(tx, visit, text)
        if not customers:
            hits = await search_by_name(tx, visit.organization_id, text, PageRequest(SHOWN_MAX + 1))
            customers = [hit.profile for hit in hits]
    search_text = text.casefold()
    stores = await list_by_name(tx, visit.organization_id, PageRequest(SHOWN_MAX), text=text)
    segments = await list_segments(tx, visit.organization_id) if visit.may(Action.READ_SEGMENTS) else []
    matching_segments = [row for row in segments if search_text in row.name.casefold()]
    journeys = await list_journeys(tx, visit.organization_id, limit=SEARCHED_MAX)
    matching_journeys = [row for row in journeys if search_text in row.name.casefold()]
    campaigns = await list_campaigns(tx, visit.organization_id, limit=SEARCHED_MAX)
    return SearchResults(
        customers[:SHOWN_MAX],
        len(customers) > SHOWN_MAX,
        [listed.store for listed in stores],
        matching_segments[:SHOWN_MAX],
        matching_journeys[:SHOWN_MAX],
        [row for row in campaigns if search_text in row.name.casefold()][:SHOWN_MAX],
    )


PAGES: Final = (Page(path=PATH, needs=Action.READ, handle=search),)
