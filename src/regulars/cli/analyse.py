"""`regulars analyse`: print figures of sales, stores, customers and products, as table, JSON or CSV."""

from enum import StrEnum
from typing import Annotated, Final, cast

import typer
from msgspec.structs import replace

from regulars.analytics.period import BY_DAY_DAYS_MAX, parts_of
from regulars.analytics.sales_figures import By
from regulars.catalog.entries import find_entries
from regulars.catalog.model import Catalog
from regulars.cli import analyse_tables as tables
from regulars.cli.analyse_sales import load_sales, load_stores
from regulars.cli.analyse_scope import (
    AllCurrencies,
    AsCsv,
    From,
    OfSegment,
    OfStores,
    OneCurrency,
    Scope,
    ScopeAnalysis,
    To,
    find_scope,
    list_currencies,
    open_analysis,
)
from regulars.cli.analyse_tables import PrintedTable
from regulars.cli.output import CommandError, ExitCode
from regulars.cli.runner import AsJson, OfOrganization, run_on_pool
from regulars.columns import questions
from regulars.kit.db import Database
from regulars.kit.ids import STORE
from regulars.kit.settings import Settings
from regulars.sales.model import Currency
from regulars.stores.find import name_stores

app = typer.Typer(no_args_is_help=True)
# Words of `products --by` for rows that are the sum of all products.
_PRODUCT_SUMS: Final = ("day", "week", "month", "currency")


class CustomersBy(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    STORE = "store"
    CURRENCY = "currency"
    COHORT = "cohort"
    RFM = "rfm"


class StoresBy(StrEnum):
    STORE = "store"
    CURRENCY = "currency"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@app.command()
def customers(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: Annotated[CustomersBy, typer.Option(help="What a row is; rfm is of today, whatever the period.")] = (
        CustomersBy.MONTH
    ),
    currency: Annotated[
        str | None,
        typer.Option(
            help="Only amounts in EUR, GBP, USD or CHF; all if not given. rfm measures money in it, or in the one with"
            " the largest net."
        ),
    ] = None,
    segment: OfSegment = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show new and returning customers, cohorts by first purchase, or RFM groups."""

    async def work(pool: Database, settings: Settings) -> PrintedTable:
        scope = await find_scope(pool, organization, first, last, segment=segment, stores=store, currency=currency)
        async with open_analysis(pool, settings, scope) as analysis:
            return await _load_customers(pool, analysis, scope, by)

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)


async def _load_customers(pool: Database, analysis: ScopeAnalysis, scope: Scope, by: CustomersBy) -> PrintedTable:
    if by is CustomersBy.COHORT:
        cohorts = questions.CohortsQuestion(period=scope.days, store_ids=scope.store_ids)
        return tables.make_cohort_table(await analysis.answer(cohorts), scope.currency)
    if by is CustomersBy.RFM:
        [measured, *_] = await list_currencies(pool, scope)
        rfm = questions.RfmQuestion(currency=measured, store_ids=scope.store_ids)
        return tables.make_rfm_table(await analysis.answer(rfm), scope.currency)
    bucket = cast("questions.Bucket", by.value if by.value in {"day", "week"} else "month")
    question = questions.CustomersQuestion(period=scope.days, by=bucket, store_ids=scope.store_ids)
    answer = await analysis.answer(question)
    if by is CustomersBy.CURRENCY:
        return tables.make_customer_currency_table(answer, scope.currency)
    if by is not CustomersBy.STORE:
        return tables.make_customer_table(answer, bucket, scope.currency)
    sales = await analysis.answer(questions.SalesQuestion(period=scope.days, by="store", store_ids=scope.store_ids))
    store_ids = [row.store_id for row in sales.rows if row.store_id is not None]
    answers = {
        STORE.encode(store_id): await analysis.answer(replace(question, store_ids=(store_id,)))
        for store_id in store_ids
    }
    async with pool.reading() as tx:
        names = await name_stores(tx, scope.organization_id, store_ids)
    encoded_names = {STORE.encode(store_id): name for store_id, name in names.items()}
    return tables.make_customer_store_table(answers, encoded_names, answer, scope.currency)


@app.command()
def products(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: Annotated[
        str,
        typer.Option(
            help="What a row is: product, store or a property of products; or the sum of all products by day, week,"
            " month or currency."
        ),
    ] = "product",
    product: Annotated[str | None, typer.Option(help="Only the product with this code.")] = None,
    currency: OneCurrency = None,
    segment: OfSegment = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show products by code, by store or by a property, the largest net first, or their sum by day, week, month or
    currency."""
    filters = () if product is None else (questions.ProductGroup(questions.ProductKey(), "value", product),)

    async def work(pool: Database, settings: Settings) -> PrintedTable:
        scope = await find_scope(pool, organization, first, last, segment=segment, stores=store, currency=currency)
        key = questions.ProductKey("store") if by in _PRODUCT_SUMS else await _read_key(pool, scope, by)
        currencies = await list_currencies(pool, scope)
        question = questions.ProductsQuestion(
            period=scope.days, currency=currencies[0], by=key, filters=filters, store_ids=scope.store_ids
        )
        parts = _divide(question, scope, by, currencies) if by in _PRODUCT_SUMS else {}
        async with open_analysis(pool, settings, scope) as analysis:
            answer = await analysis.answer(question)
            if by in _PRODUCT_SUMS:
                answers = {name: await analysis.answer(part) for name, part in parts.items()}
                return tables.make_product_sum_table(answers, by, question.currency, answer)
        store_ids = [STORE.decode(row.group.value) for row in answer.rows] if key.kind == "store" else []
        async with pool.reading() as tx:
            names = await name_stores(tx, scope.organization_id, {each for each in store_ids if each is not None})
        encoded_names = {STORE.encode(store_id): name for store_id, name in names.items()}
        return tables.make_product_table(answer, key, question.currency, encoded_names)

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)


async def _read_key(pool: Database, scope: Scope, text: str) -> questions.ProductKey:
    match text:
        case "product" | "store":
            return questions.ProductKey(text)
        case _:
            pass
    async with pool.reading() as tx:
        if not await find_entries(tx, scope.organization_id, Catalog.PRODUCTS, [text]):
            raise CommandError(
                f"--by {text}: choose product, store, {', '.join(_PRODUCT_SUMS)}, or a property that products have.",
                code=ExitCode.USAGE,
            )
    return questions.ProductKey("property", text)


def _divide(
    question: questions.ProductsQuestion, scope: Scope, by: str, currencies: list[Currency]
) -> dict[str, questions.ProductsQuestion]:
    """One question for each row, since the analysis process sums products over one period in one currency."""
    if by == "currency":
        return {currency: replace(question, currency=currency) for currency in currencies}
    if by not in scope.period.units:
        raise CommandError(
            f"--by {by}: a period of more than {BY_DAY_DAYS_MAX} days is divided by week or month.",
            code=ExitCode.USAGE,
        )
    parts = parts_of(scope.period, by)
    return {part.first.isoformat(): replace(question, period=questions.Period(part.first, part.last)) for part in parts}


@app.command()
def sales(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: Annotated[By, typer.Option(help="What a row is; hour is for one day.")] = By.DAY,
    currency: AllCurrencies = None,
    segment: OfSegment = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show sales net of returns by hour, day, week, month, store or currency."""

    async def work(pool: Database, settings: Settings) -> PrintedTable:
        scope = await find_scope(pool, organization, first, last, segment=segment, stores=store, currency=currency)
        return await load_sales(pool, settings, scope, by)

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)


@app.command()
def stores(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: Annotated[
        StoresBy,
        typer.Option(help="What a row is: a store in one currency; with day, week or month, also in one of these."),
    ] = StoresBy.STORE,
    currency: AllCurrencies = None,
    segment: OfSegment = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the sales of each store net of returns, in the whole period or by day, week or month."""

    async def work(pool: Database, settings: Settings) -> PrintedTable:
        scope = await find_scope(pool, organization, first, last, segment=segment, stores=store, currency=currency)
        return await load_stores(pool, settings, scope, By(by.value))

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)
