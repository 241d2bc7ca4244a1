"""The page of products: net, units and returns by product, by a property or by store, and the basket: the products that
customers buy together with them."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.analytics.pages.answers import PAGE_WAIT_S, AnalysisResult, await_answer, to_question_period
from regulars.analytics.pages.filters import AnalysisView, list_currencies, read_view
from regulars.analytics.pages.frame import (
    Definition,
    export_table,
    list_saved_views,
    render_analysis,
    render_refused,
    segment_url,
)
from regulars.analytics.pages.measure_pages import tickets_url
from regulars.analytics.pages.product_table import (
    COLUMNS,
    CSV_HEADER,
    ProductGrouping,
    basket_file,
    basket_rows,
    csv_rows,
    list_filters,
    list_keys,
    product_table,
    read_grouping,
    rows_max_of,
    sort_rows,
)
from regulars.analytics.segment_conditions import product_conditions, resolve_members
from regulars.catalog.entries import list_entries
from regulars.catalog.model import Catalog
from regulars.columns.client import DEADLINE_S, Analysis
from regulars.columns.lifecycle import need_columns
from regulars.columns.protocol import SegmentQuery
from regulars.columns.questions import BasketAnswer, BasketQuestion, ProductKey, ProductsAnswer, ProductsQuestion
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.sales.model import Currency
from regulars.web.render import redirect
from regulars.web.visit import Visit

PATH: Final = "/analyse/products"
PROPERTIES_OFFERED_MAX: Final = 200
DEFINITIONS: Final = (
    Definition("Net", "Products sold minus products returned, with tax, in one currency."),
    Definition("Net units", "Units sold minus units returned. An item sold by weight or length counts as one unit."),
    Definition("Purchases", "Purchases with this product."),
    Definition("Return rate", "Units returned ÷ units sold in the period."),
    Definition("High", "More than twice the return rate of all rows."),
    Definition("Customers", "Known customers who bought it."),
    Definition("Net, last 12 weeks", "Net of each of the 12 weeks up to the last day of the period."),
    Definition("Net change", "Net compared with that of the other period; new: nothing was sold then."),
)


class ProductContext(NamedTuple):
    """The data that is read from the database before the request to the analysis process."""

    query: SegmentQuery
    currency: Currency
    currencies: Sequence[str]
    properties: Sequence[str]


class ProductPages:
    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    async def show(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            view = await _read_view(tx, visit)
            grouping = read_grouping(view)
            if view.form.is_refused or grouping is None:
                return await render_refused(tx, visit, view, "Products")
            context = await _load_context(tx, visit, view)
            saved_views = await list_saved_views(tx, visit, view)
        answer, basket = await self._request_figures(visit, view, grouping, context)
        figures = answer.figures
        return render_analysis(
            visit,
            "analytics/products.html",
            view,
            views=saved_views,
            defined=DEFINITIONS,
            reloads=answer.is_waiting or basket.is_waiting,
            reloads_soon=answer.is_nearly_ready,
            answer=answer,
            basket=basket,
            basket_rows=[] if basket.figures is None else basket_rows(visit.format, view, basket.figures),
            table=None if figures is None else product_table(visit.format, view, grouping, context.currency, figures),
            columns=COLUMNS,
            currency=context.currency,
            currencies=context.currencies,
            keys=list_keys(grouping, context.properties),
            trail=list_filters(view, grouping),
            segment_url=_customers_url(visit, view, grouping, context),
            tickets_url=_tickets_url(visit, view, grouping, context.currency),
        )

    async def export(self, visit: Visit) -> Response:
        """Export the table of products, or with `table=basket` the products that were bought with them."""
        async with visit.database.transaction() as tx:
            view = await _read_view(tx, visit)
            grouping = read_grouping(view)
            view.require_readable()
            context = await _load_context(tx, visit, view)
        grouping = grouping or ProductGrouping(ProductKey(), ())
        answer, basket = await self._request_figures(visit, view, grouping, context, deadline_s=DEADLINE_S)
        figures, bought_together = answer.figures, basket.figures
        if figures is None or bought_together is None:
            return redirect(visit, view.url())
        if visit.query.get("table", "") == "basket":
            rows_together = basket_rows(visit.format, view, bought_together)
            return export_table(visit, *basket_file(rows_together, bought_together.tickets))
        rows = sort_rows(view, figures.rows)
        return export_table(visit, "products.csv", CSV_HEADER, csv_rows(view, context.currency, rows, figures.whole))

    async def _request_figures(
        self,
        visit: Visit,
        view: AnalysisView,
        grouping: ProductGrouping,
        context: ProductContext,
        *,
        deadline_s: float = PAGE_WAIT_S,
    ) -> tuple[AnalysisResult[ProductsAnswer], AnalysisResult[BasketAnswer]]:
        """Request the table, and for a page that is filtered to a group, the products that were bought with it."""
        comparison = view.comparison
        question = ProductsQuestion(
            store_ids=view.store_ids,
            period=to_question_period(view.period),
            currency=context.currency,
            by=grouping.by,
            filters=grouping.filters,
            comparison=None if comparison is None else to_question_period(comparison.period),
            rows_max=rows_max_of(view),
        )
        basket = BasketQuestion(
            store_ids=view.store_ids,
            period=to_question_period(view.period),
            currency=context.currency,
            filters=grouping.filters,
        )
        request = partial(self._analysis.answer, visit.organization_id, context.query, deadline_s=deadline_s)
        products = await_answer(request(question))
        if not grouping.filters:
            return await products, AnalysisResult(BasketAnswer(as_of=visit.now, rows=(), tickets=0))
        return await asyncio.gather(products, await_answer(request(basket)))


async def _load_context(tx: Tx, visit: Visit, view: AnalysisView) -> ProductContext:
    await need_columns(tx, visit.organization_id)
    currencies = await list_currencies(tx, visit, view)
    entries = await list_entries(tx, visit.organization_id, Catalog.PRODUCTS, PageRequest(PROPERTIES_OFFERED_MAX))
    return ProductContext(
        query=await resolve_members(tx, visit.organization_id, view.segment_id),
        currency=currencies[0],
        currencies=sorted(currencies),
        properties=[entry.key for entry in entries],
    )


async def _read_view(tx: Tx, visit: Visit) -> AnalysisView:
    return await read_view(tx, visit, PATH, fields=("group", "rows"), lists=("in",))


def _customers_url(visit: Visit, view: AnalysisView, grouping: ProductGrouping, context: ProductContext) -> str:
    """The URL that creates a segment of the customers who bought the only product of the page."""
    product = _only_product(grouping)
    if product is None:
        return ""
    match = product_conditions(
        product,
        context.currency if len(context.currencies) > 1 else None,
        first=view.period.first,
        last=view.period.last,
        segment_id=view.segment_id,
        store_ids=view.store_ids,
    )
    return segment_url(visit, match)


def _only_product(grouping: ProductGrouping) -> str | None:
    """The code of the product, if the page is filtered to one product and nothing else."""
    groups = grouping.filters
    is_one_product = len(groups) == 1 and (groups[0].key.kind, groups[0].kind) == ("product", "value")
    return groups[0].value if is_one_product else None


def _tickets_url(visit: Visit, view: AnalysisView, grouping: ProductGrouping, currency: Currency) -> str:
    """The URL of the list of tickets with the only product of the page; empty if that list cannot filter them."""
    product = _only_product(grouping)
    if product is None:
        return ""
    return tickets_url(visit, view, view.period, currency, store_ids=view.store_ids, product=product)
