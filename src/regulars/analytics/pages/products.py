"""The page of products: net, units and returns by code, by any property or by store, and what is bought with them."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from regulars.analytics.pages.answers import AT_ONCE_S, AnalysisResult, await_answer, to_question_period
from regulars.analytics.pages.filters import AnalysisView, list_currencies, read_view
from regulars.analytics.pages.frame import (
    Definition,
    export_table,
    list_own_views,
    render_analysis,
    render_refused,
    segment_url,
)
from regulars.analytics.pages.product_table import (
    COLUMNS,
    CSV_HEADER,
    Choice,
    basket_rows,
    csv_rows,
    list_keys,
    list_trail,
    product_table,
    read_choice,
    rows_max_of,
    sort_rows,
)
from regulars.analytics.segment_conditions import product_conditions, resolve_members
from regulars.catalog.entries import list_entries
from regulars.catalog.model import Catalog
from regulars.kit.db import Tx
from regulars.kit.keyset import PageRequest
from regulars.sales.model import Currency
from regulars.segments.analysis.client import DEADLINE_S, Analysis
from regulars.segments.analysis.protocol import SegmentQuery
from regulars.segments.analysis.questions import (
    BasketAnswer,
    BasketQuestion,
    ProductKey,
    ProductsAnswer,
    ProductsQuestion,
)
from regulars.segments.columns.lifecycle import need_columns
from regulars.web.render import redirect
from regulars.web.visit import Visit

PATH: Final = "/analyse/products"
PROPERTIES_OFFERED_MAX: Final = 200
DEFINITIONS: Final = (
    Definition("Net", "Lines of purchases minus lines of returns, with tax, in one currency."),
    Definition("Units", "Units sold minus units returned. An item sold by weight or length counts as one unit."),
    Definition("Tickets", "Purchases with such a line."),
    Definition("Return rate", "Units returned ÷ units sold in the period."),
    Definition("High", "More than twice the return rate of all rows."),
    Definition("Customers", "Identified customers who bought it."),
    Definition("12 weeks", "Net of each of the 12 weeks up to the last day of the period."),
    Definition("Change", "Net against that of the compared period."),
)


class Loaded(NamedTuple):
    """Everything that is read from the tables before the analysis process is asked."""

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
            choice = read_choice(view)
            if view.form.is_refused or choice is None:
                return await render_refused(tx, visit, view, "Products")
            loaded = await _load(tx, visit, view)
            views = await list_own_views(tx, visit, view)
        answer, basket = await self._ask(visit, view, choice, loaded, rows_max=rows_max_of(view))
        found = answer.figures
        return render_analysis(
            visit,
            "analytics/products.html",
            view,
            views=views,
            defined=DEFINITIONS,
            is_live=answer.is_waiting or basket.is_waiting,
            is_soon=answer.is_soon,
            answer=answer,
            basket=basket,
            basket_rows=[] if basket.figures is None else basket_rows(visit.format, view, basket.figures),
            table=None if found is None else product_table(visit.format, view, choice, loaded.currency, found),
            columns=COLUMNS,
            currency=loaded.currency,
            currencies=loaded.currencies,
            keys=list_keys(choice, loaded.properties),
            trail=list_trail(view, choice),
            segment_url=_customers_url(visit, view, choice, loaded.currency),
            tickets_url=_tickets_url(visit, view, choice, loaded.currency),
        )

    async def export(self, visit: Visit) -> Response:
        async with visit.database.transaction() as tx:
            view = await _read_view(tx, visit)
            choice = read_choice(view)
            view.require_readable()
            loaded = await _load(tx, visit, view)
        wanted = choice or Choice(ProductKey(), ())
        answer, _ = await self._ask(visit, view, wanted, loaded, rows_max=rows_max_of(view), deadline_s=DEADLINE_S)
        found = answer.figures
        if found is None:
            return redirect(visit, view.url())
        rows = sort_rows(view, found.rows)
        return export_table(visit, "products.csv", CSV_HEADER, csv_rows(view, loaded.currency, rows, found.whole))

    async def _ask(
        self,
        visit: Visit,
        view: AnalysisView,
        choice: Choice,
        loaded: Loaded,
        *,
        rows_max: int,
        deadline_s: float = AT_ONCE_S,
    ) -> tuple[AnalysisResult[ProductsAnswer], AnalysisResult[BasketAnswer]]:
        """The basket is asked for only inside a group."""
        comparison = view.comparison
        store_ids = None if view.store_ids is None else tuple(view.store_ids)
        question = ProductsQuestion(
            store_ids=store_ids,
            period=to_question_period(view.period),
            currency=loaded.currency,
            by=choice.by,
            inside=choice.inside,
            comparison=None if comparison is None else to_question_period(comparison.period),
            rows_max=rows_max,
        )
        basket = BasketQuestion(
            store_ids=store_ids,
            period=to_question_period(view.period),
            currency=loaded.currency,
            inside=choice.inside,
        )
        ask = partial(self._analysis.answer, visit.organization_id, loaded.query, deadline_s=deadline_s)
        products = await_answer(ask(question))
        if not choice.inside:
            return await products, AnalysisResult(BasketAnswer(as_of=visit.now, rows=(), tickets=0))
        found = await asyncio.gather(products, await_answer(ask(basket)))
        return found[0], found[1]


async def _load(tx: Tx, visit: Visit, view: AnalysisView) -> Loaded:
    await need_columns(tx, visit.organization_id)
    currencies = await list_currencies(tx, visit, view)
    entries = await list_entries(tx, visit.organization_id, Catalog.PRODUCTS, PageRequest(PROPERTIES_OFFERED_MAX))
    return Loaded(
        query=await resolve_members(tx, visit.organization_id, view.segment_id),
        currency=currencies[0],
        currencies=sorted(currencies),
        properties=[entry.key for entry in entries],
    )


async def _read_view(tx: Tx, visit: Visit) -> AnalysisView:
    return await read_view(tx, visit, PATH, fields=("group", "rows"), lists=("in",))


def _customers_url(visit: Visit, view: AnalysisView, choice: Choice, currency: Currency) -> str:
    """The customers who bought a product as a segment."""
    product = _only_product(choice)
    if product is None:
        return ""
    match = product_conditions(
        product,
        currency,
        first=view.period.first,
        last=view.period.last,
        segment_id=view.segment_id,
        store_ids=view.store_ids,
    )
    return segment_url(visit, match)


def _only_product(choice: Choice) -> str | None:
    """The code of the product that the page is about, and nothing narrower."""
    groups = choice.inside
    is_one = len(groups) == 1 and (groups[0].key.kind, groups[0].kind) == ("product", "value")
    return groups[0].value if is_one else None


def _tickets_url(visit: Visit, view: AnalysisView, choice: Choice, currency: Currency) -> str:
    """The tickets with a product, where the list of tickets has filters for all of this."""
    product = _only_product(choice)
    if product is None or view.segment is not None or len(view.stores) > 1:
        return ""
    days = {"from": view.period.first.isoformat(), "to": view.period.last.isoformat()}
    query = {**days, "currency": currency, "product": product, "store": view.texts("store")}
    return visit.url("/tickets") + "?" + urlencode(query, doseq=True)
