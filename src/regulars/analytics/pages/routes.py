"""The routes of the pages of analytics."""

from functools import partial

from starlette.responses import Response

from regulars.analytics.pages import customers, explore, products, sales, stores, views
from regulars.analytics.pages.customers import CustomerPages
from regulars.analytics.pages.explore import ExplorePages
from regulars.analytics.pages.measure_pages import MeasurePages
from regulars.analytics.pages.products import ProductPages
from regulars.analytics.pages.sales import SalesPages
from regulars.analytics.pages.stores import StorePages
from regulars.columns.client import Analysis
from regulars.web.access import Action
from regulars.web.render import redirect
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit


def pages(analysis: Analysis) -> tuple[Page, ...]:
    """The pages of analytics. They show no personal data, so every role may open them."""
    tables: dict[str, MeasurePages | CustomerPages | ProductPages | ExplorePages] = {
        sales.PATH: SalesPages(analysis),
        customers.PATH: CustomerPages(analysis),
        products.PATH: ProductPages(analysis),
        stores.PATH: StorePages(analysis),
        explore.PATH: ExplorePages(analysis),
    }
    page, form = partial(Page, needs=Action.READ), partial(Form, needs=Action.READ, harm=Harm.CHANGES)
    return (
        page(path="/analyse", handle=_redirect_to_sales),
        *(page(path=path, handle=handlers.show) for path, handlers in tables.items()),
        *(page(path=f"{path}.csv", handle=handlers.export, harm=Harm.FIGURES) for path, handlers in tables.items()),
        form(path="/analyse/views", handle=views.save),
        form(path="/analyse/views/delete", handle=views.delete, harm=Harm.STOPS),
    )


async def _redirect_to_sales(visit: Visit) -> Response:
    return redirect(visit, visit.url(sales.PATH))
