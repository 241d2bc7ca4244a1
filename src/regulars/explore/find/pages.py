"""The search over everything with a name, an id or a number: a page, and the results while the user types. On the page,
an exact id redirects to the page of its object.

The text is sent in a form, and the page that shows the results reads it from a cookie. So it is in no address, no log
of a proxy and no history of a browser, and the page can be loaded again.
"""

from typing import Final

from starlette.responses import Response

from regulars.campaigns.manage import name_campaigns
from regulars.consent.find import search_subscription
from regulars.explore.customers import listing
from regulars.explore.find.results import ResultGroup, SearchResult, find_by_text
from regulars.journeys.runs.lists import name_journeys
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, JOURNEY, PROFILE, SEGMENT, STORE, SUBSCRIPTION, read_reference
from regulars.sales.listing import find_sale
from regulars.segments.saved.manage import find_names
from regulars.stores.find import find_store
from regulars.web import cookies
from regulars.web.access import Action
from regulars.web.render import read_signed_cookie, redirect, render, set_signed_cookie
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

PATH: Final = "/search"
TEXT_CHARACTERS_MAX: Final = 255
# Objects of each kind on the page, and while the user types.
SHOWN_MAX: Final = 10
SUGGESTED_MAX: Final = 5
# While the user types, customers and tickets are searched from this many characters on.
TYPED_CHARACTERS_MIN: Final = 3


async def show(visit: Visit) -> Response:
    """Show the results of the last search, or of an address that someone wrote by hand."""
    if visit.query.get("q", ""):
        return await search(visit)
    return await _show(visit, _clean(read_signed_cookie(visit, cookies.SEARCH)))


async def search(visit: Visit) -> Response:
    text = _clean(visit.form.get("q", visit.query.get("q")))
    async with visit.database.reading() as tx:
        target = await find_exactly(tx, visit, text) if text else None
    if target is None and "q" not in visit.form:
        return await _show(visit, text)
    response = redirect(visit, target or visit.url(PATH))
    if target is None:
        set_signed_cookie(visit, response, cookies.SEARCH, text, max_age_s=cookies.SEARCH_S)
    return response


async def _show(visit: Visit, text: str) -> Response:
    groups: list[ResultGroup] | None = None
    if text:
        async with visit.database.reading() as tx:
            groups = await find_by_text(tx, visit, text, limit=SHOWN_MAX)
    return render(visit, "explore/search.html", text=text, groups=groups)


async def suggest(visit: Visit) -> Response:
    """Show the first results while the user types."""
    text = _clean(visit.form.get("q"))
    groups: list[ResultGroup] = []
    if text:
        async with visit.database.reading() as tx:
            groups = await find_by_text(tx, visit, text, limit=SUGGESTED_MAX, characters_min=TYPED_CHARACTERS_MIN)
            target = await find_exactly(tx, visit, text) if len(text) >= TYPED_CHARACTERS_MIN else None
        if target is not None and all(row.url != target for group in groups for row in group.rows):
            groups = [ResultGroup("Exact match", [SearchResult(text, target)]), *groups]
    return render(
        visit,
        "explore/suggestions.html",
        groups=groups,
        count=sum(len(group.rows) for group in groups),
        is_short=len(text) < TYPED_CHARACTERS_MIN,
    )


def _clean(text: str | None) -> str:
    return (text or "").strip()[:TEXT_CHARACTERS_MAX].strip()


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


PAGES: Final = (
    Page(path=PATH, needs=Action.READ, handle=show),
    Form(path=PATH, needs=Action.READ, handle=search, harm=Harm.CHANGES),
    Form(path=f"{PATH}/suggestions", needs=Action.READ, handle=suggest, harm=Harm.CHANGES),
)
