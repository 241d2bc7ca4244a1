"""What a search finds: pages, customers, tickets, and what has a name."""

import re
from collections.abc import Iterable, Sequence
from operator import or_
from typing import Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from regulars.campaigns.manage import list_campaigns
from regulars.campaigns.model import CampaignRow
from regulars.catalog.counts.products import Product
from regulars.catalog.suggestions import find_products_by_name
from regulars.columns.questions import ProductGroup, ProductKey
from regulars.explore.customers import listing
from regulars.journeys.manage import list_journeys
from regulars.journeys.model import JourneyRow
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, PROFILE, SEGMENT
from regulars.kit.keyset import PageRequest
from regulars.kit.name_search import NamePatterns, filter_names, find_parts, find_similar, fold_name
from regulars.profiles.model import Profile
from regulars.profiles.search import search_by_name, search_by_number
from regulars.sales.tickets import find_by_beginning
from regulars.segments.saved.manage import list_segments
from regulars.segments.saved.model import SegmentRow
from regulars.stores.find import find_by_name
from regulars.stores.model import Store
from regulars.web import mask
from regulars.web.access import Action
from regulars.web.format import short_external_id
from regulars.web.navigation import NamedPage
from regulars.web.render import list_pages
from regulars.web.visit import Visit

# Journeys and campaigns whose names are searched, the newest.
SEARCHED_MAX: Final = 1_000
PAGES: Final = "Pages and settings"
UNNAMED_CUSTOMER: Final = "No name yet"


class SearchResult(NamedTuple):
    """A found object, named as in its list. `code` is its id of the caller's system."""

    name: str
    url: str
    note: str = ""
    code: str = ""

    @property
    def short_code(self) -> str:
        return short_external_id(self.code) if self.code else ""


class _NamedObjects(NamedTuple):
    """What is searched in memory: an organization has few of these."""

    segments: list[SegmentRow]
    journeys: list[JourneyRow]
    campaigns: list[CampaignRow]


class ResultGroup(NamedTuple):
    """SearchResult objects of one kind. `more` is the address of all of them, if the group has only the first."""

    title: str
    rows: Sequence[SearchResult]
    more: str = ""


async def find_by_text(tx: Tx, visit: Visit, text: str, *, limit: int, characters_min: int = 1) -> list[ResultGroup]:
    """Find what has the words in its name. Customers and tickets are found by beginnings, from a number of typed
    characters on. Typing errors are tolerated in names if nothing is found otherwise."""
    beginnings = await _find_by_beginnings(tx, visit, text, limit=limit) if len(text) >= characters_min else []
    parts, similar = find_parts(text), find_similar(text)
    if parts is None or similar is None:
        return beginnings
    listed = await _load_named_objects(tx, visit)
    named = await _find_by_names(tx, visit, parts, listed, limit=limit)
    if not named and not beginnings:
        named = await _find_by_names(tx, visit, similar, listed, limit=limit)
    # Pages stand first, because most searches for them are words that nothing else has.
    pages = [group for group in named if group.title == PAGES]
    return [*pages, *beginnings, *(group for group in named if group.title != PAGES)]


async def _find_by_beginnings(tx: Tx, visit: Visit, text: str, *, limit: int) -> list[ResultGroup]:
    customers = await _find_customers(tx, visit, text, limit=limit + 1) if visit.sees_personal else []
    tickets = await find_by_beginning(tx, visit.organization_id, text, limit=limit)
    more = f"{visit.url(listing.PATH)}?{urlencode({'q': text})}" if len(customers) > limit else ""
    found = [
        SearchResult(
            mask.name(visit, one.first_name, one.last_name) or UNNAMED_CUSTOMER,
            visit.url(listing.PATH, PROFILE.encode(one.id)),
            mask.phone(visit, one.phone_number) or "",
            mask.text(visit, one.external_id) or "",
        )
        for one in customers[:limit]
    ]
    rows = [
        SearchResult(
            one.external_id,
            visit.url("/tickets", one.external_id),
            f"{one.type.capitalize()}, {visit.format.day(one.occurred_at)}",
        )
        for one in tickets
    ]
    return _without_empty(ResultGroup("Customers", found, more), ResultGroup("Tickets", rows))


async def _find_customers(tx: Tx, visit: Visit, text: str, *, limit: int) -> list[Profile]:
    """The customers with this id or number, else those whose name or number begins with the text."""
    exact = await listing.find_exactly(tx, visit, text)
    if exact:
        return exact[:limit]
    by_number = await search_by_number(tx, visit.organization, text, limit=limit)
    if by_number:
        return by_number
    return [hit.profile for hit in await search_by_name(tx, visit.organization_id, text, PageRequest(limit))]


async def _load_named_objects(tx: Tx, visit: Visit) -> _NamedObjects:
    organization_id = visit.organization_id
    return _NamedObjects(
        await list_segments(tx, organization_id) if visit.may(Action.READ_SEGMENTS) else [],
        await list_journeys(tx, organization_id, limit=SEARCHED_MAX),
        await list_campaigns(tx, organization_id, limit=SEARCHED_MAX),
    )


async def _find_by_names(
    tx: Tx, visit: Visit, patterns: NamePatterns, listed: _NamedObjects, *, limit: int
) -> list[ResultGroup]:
    products = await find_products_by_name(tx, visit.organization_id, patterns, limit=limit)
    stores = await find_by_name(tx, visit.organization_id, patterns, limit=limit)
    segments = filter_names(listed.segments, patterns, lambda row: row.name, limit=limit)
    journeys = filter_names(listed.journeys, patterns, lambda row: row.name, limit=limit)
    campaigns = filter_names(listed.campaigns, patterns, lambda row: row.name, limit=limit)
    return _without_empty(
        ResultGroup(PAGES, _find_pages(list_pages(visit), patterns)[:limit]),
        ResultGroup("Products", [_found_product(visit, one) for one in products]),
        ResultGroup("Stores", [_found_store(visit, one) for one in stores]),
        ResultGroup("Segments", [_found_segment(visit, one) for one in segments]),
        ResultGroup("Journeys", [_found_journey(visit, one) for one in journeys]),
        ResultGroup("Campaigns", [_found_campaign(visit, one) for one in campaigns]),
    )


def _find_pages(pages: Iterable[NamedPage], patterns: NamePatterns) -> list[SearchResult]:
    """The pages whose label has all words, then those that have them with the area and the everyday words, of which
    only beginnings count."""
    ranked = []
    for page in pages:
        label, words = fold_name(page.label), fold_name(f"{page.label} {page.area} {page.words}")
        in_label = [re.search(part, label) is not None for part in patterns.parts]
        in_words = [re.search(beginning, words) is not None for beginning in patterns.beginnings]
        if all(map(or_, in_label, in_words)):
            begins = re.match(patterns.first, label) is not None
            ranked.append((not all(in_label), not begins, SearchResult(page.label, page.url, page.area)))
    return [found for *_, found in sorted(ranked, key=lambda each: each[:2])]


def _found_product(visit: Visit, product: Product) -> SearchResult:
    group = ProductGroup(ProductKey(), value=product.code)
    query = urlencode(
        {"in": msgspec.json.encode(group).decode(), "group": msgspec.json.encode(ProductKey("store")).decode()}
    )
    return SearchResult(product.name or product.code, f"{visit.url('/analyse/products')}?{query}", "", product.code)


def _found_store(visit: Visit, store: Store) -> SearchResult:
    town = "" if store.address is None else store.address.locality
    return SearchResult(store.display_name, visit.url("/stores", store.external_id), town, store.external_id)


def _found_segment(visit: Visit, segment: SegmentRow) -> SearchResult:
    return SearchResult(segment.name, visit.url("/segments", SEGMENT.encode(segment.id)), f"Version {segment.version}")


def _found_journey(visit: Visit, journey: JourneyRow) -> SearchResult:
    return SearchResult(journey.name, visit.url("/journeys", JOURNEY.encode(journey.id)), journey.state.capitalize())


def _found_campaign(visit: Visit, campaign: CampaignRow) -> SearchResult:
    state = "archived" if campaign.is_archived else campaign.state
    return SearchResult(campaign.name, visit.url("/campaigns", CAMPAIGN.encode(campaign.id)), state.capitalize())


def _without_empty(*groups: ResultGroup) -> list[ResultGroup]:
    return [group for group in groups if group.rows]
