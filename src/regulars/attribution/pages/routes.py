"""The URL paths of the attribution pages and their handlers."""

from functools import partial
from typing import Final

from regulars.attribution.pages import credited_tickets, overview, results, settings
from regulars.attribution.pages.links import PATH, TICKETS_PATH
from regulars.web.access import Action
from regulars.web.route import Form, Harm, Page

_page = partial(Page, needs=Action.READ)
_form = partial(Form, needs=Action.MANAGE_ORGANIZATION, harm=Harm.CHANGES)

# Every role may open the pages, because they mask the names of customers.
PAGES: Final[tuple[Page, ...]] = (
    _page(path=PATH, handle=overview.show_overview),
    _page(path=f"{PATH}.csv", handle=overview.export_overview, harm=Harm.FIGURES),
    *credited_tickets.TICKETS.pages(TICKETS_PATH, needs=Action.READ),
    _page(path="/campaigns/{campaign}/results", handle=results.show_campaign_results),
    _page(path="/journeys/{journey}/results", handle=results.show_journey_results),
    _page(path=settings.PATH, handle=settings.show_settings),
    _form(path=f"{settings.PATH}/preview", handle=settings.preview),
    _form(path=settings.PATH, handle=settings.save),
)
