"""`regulars analyse`: print figures of sales, stores, customers and products, as table, JSON or CSV."""

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any, cast, get_args
from uuid import UUID

import typer

from regulars.analytics.sales_figures import By, read_sales
from regulars.analytics.segment_conditions import resolve_members
from regulars.cli import analyse_tables as tables
from regulars.cli.analyse_scope import DEADLINE_S, AsCsv, From, OfSegment, OfStores, Scope, To, find_scope
from regulars.cli.analyse_tables import PrintedTable
from regulars.cli.output import CommandError, ExitCode
from regulars.cli.runner import AsJson, OfOrganization, run_on_pool
from regulars.kit.db import Database, Tx
from regulars.kit.ids import STORE
from regulars.kit.settings import Settings
from regulars.sales.model import Currency
from regulars.sales.totals.model import PerCurrency, add_up
from regulars.segments.analysis import questions
from regulars.segments.analysis.client import running
from regulars.segments.columns.lifecycle import need_columns
from regulars.stores.find import name_stores

app = typer.Typer(no_args_is_help=True)
OfCurrency = Annotated[str, typer.Option("--currency", help="EUR, GBP, USD or CHF.")]


class CustomersBy(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    COHORT = "cohort"
    RFM = "rfm"


@app.command()
def customers(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: Annotated[CustomersBy, typer.Option(help="What a row is; rfm is of today, whatever the period.")] = (
        CustomersBy.MONTH
    ),
    currency: OfCurrency = "EUR",
    segment: OfSegment = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show new and returning customers, cohorts by first purchase, or RFM groups."""
    currency_code = _read_currency(currency)

    async def work(pool: Database, settings: Settings) -> PrintedTable:
        scope = await find_scope(pool, organization, first, last, segment=segment, stores=store)
        question: questions.QuestionOf[Any]
        match by:
            case CustomersBy.COHORT:
                question = questions.CohortsQuestion(period=scope.days, store_ids=scope.store_ids)
                return tables.make_cohort_table(await _query_analysis(pool, settings, scope, question))
            case CustomersBy.RFM:
                question = questions.RfmQuestion(currency=currency_code, store_ids=scope.store_ids)
                return tables.make_rfm_table(await _query_analysis(pool, settings, scope, question))
            case _:
                bucket = cast("questions.Bucket", by.value)
                question = questions.CustomersQuestion(period=scope.days, by=bucket, store_ids=scope.store_ids)
                return tables.make_customer_table(await _query_analysis(pool, settings, scope, question), bucket)

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)


@app.command()
def products(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: Annotated[str, typer.Option(help="What a row is: product, store, or a property of products.")] = "product",
    product: Annotated[str | None, typer.Option(help="Only the product with this code.")] = None,
    currency: OfCurrency = "EUR",
    segment: OfSegment = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show products by code, by store or by a property, the largest net first."""
    key = _read_key(by)
    by_code = questions.ProductKey()
    filters = () if product is None else (questions.ProductGroup(by_code, "value", product),)
    currency_code = _read_currency(currency)

    async def work(pool: Database, settings: Settings) -> PrintedTable:
        scope = await find_scope(pool, organization, first, last, segment=segment, stores=store)
        question = questions.ProductsQuestion(
            period=scope.days, currency=currency_code, by=key, filters=filters, store_ids=scope.store_ids
        )
        answer = await _query_analysis(pool, settings, scope, question)
        async with pool.reading() as tx:
            stores = [STORE.decode(row.group.value) for row in answer.rows] if key.kind == "store" else []
            names = await name_stores(
                tx, scope.organization_id, {store_id for store_id in stores if store_id is not None}
            )
        return tables.make_product_table(answer, by, {STORE.encode(store_id): name for store_id, name in names.items()})

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)


async def _query_analysis(
    pool: Database, settings: Settings, scope: Scope, question: questions.QuestionOf[questions.AnswerType]
) -> questions.AnswerType:
    """Query the analysis process. If the columnar data that it reads does not exist, the worker starts to build it, and
    an error reports the progress."""
    async with pool.transaction() as tx:
        await need_columns(tx, scope.organization_id)
        query = scope.members or await resolve_members(tx, scope.organization_id, None)
    async with running(settings) as analysis:
        return await analysis.answer(scope.organization_id, query, question, deadline_s=DEADLINE_S)


def _read_currency(text: str) -> Currency:
    for currency in get_args(Currency):
        if text == currency:
            return currency  # type: ignore[no-any-return]  # one of the literals
    raise CommandError(f"--currency: {text} is none of {', '.join(get_args(Currency))}.", code=ExitCode.USAGE)


def _read_key(text: str) -> questions.ProductKey:
    match text:
        case "product" | "store":
            return questions.ProductKey(text)
        case _:
            return questions.ProductKey("property", text)


@app.command()
def sales(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: Annotated[By, typer.Option(help="What a row is; the hours are those of the first day.")] = By.DAY,
    segment: OfSegment = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show sales net of returns by hour, day, week, month, store or currency."""

    async def work(pool: Database, settings: Settings) -> PrintedTable:
        scope = await find_scope(pool, organization, first, last, segment=segment, stores=store)
        return await _load_sales(pool, settings, scope, by)

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)


@app.command()
def stores(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    segment: OfSegment = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the sales of each store net of returns."""
    sales(
        organization=organization,
        first=first,
        last=last,
        by=By.STORE,
        segment=segment,
        store=store,
        as_json=as_json,
        as_csv=as_csv,
    )


async def _load_sales(pool: Database, settings: Settings, scope: Scope, by: By) -> PrintedTable:
    """Read the stored totals of sales; for the members of a segment, query the analysis process."""
    first, last = scope.period.first, scope.period.last
    if scope.members is not None:
        return await _query_segment_sales(pool, settings, scope, by)
    async with pool.snapshot() as tx:
        figures = await read_sales(tx, scope.organization_id, first=first, last=last, by=by, store_ids=scope.store_ids)
        progress = figures.progress
        names = await _name_stores(tx, scope, by, figures.rows)
    table = tables.make_sales_table(by, figures.rows, figures.total, names, as_of=progress.as_of)
    return replace(table, filled_until=progress.filled_until)


async def _query_segment_sales(pool: Database, settings: Settings, scope: Scope, by: By) -> PrintedTable:
    if scope.members is None or by is By.HOUR:
        raise CommandError(
            "Sales of a segment are counted by day or longer, by store or by currency.", code=ExitCode.USAGE
        )
    question = questions.SalesQuestion(
        period=scope.days,
        by=by.value if by is not By.CURRENCY else "month",  # type: ignore[arg-type]  # hours are refused above
        store_ids=scope.store_ids,
    )
    async with running(settings) as analysis:
        answer = await analysis.answer(scope.organization_id, scope.members, question, deadline_s=DEADLINE_S)
    totals = add_up(answer.whole.items())
    rows: dict[Any, PerCurrency] = {row.store_id or row.first: add_up(row.sums.items()) for row in answer.rows}
    if by is By.CURRENCY:
        rows = {currency: PerCurrency({currency: sums}) for currency, sums in totals.by_net_sales()}
    async with pool.reading() as tx:
        names = await _name_stores(tx, scope, by, rows)
    return tables.make_sales_table(by, rows, totals, names, as_of=answer.as_of)


async def _name_stores(tx: Tx, scope: Scope, by: By, store_ids: Collection[UUID]) -> dict[UUID, str]:
    """The names of the stores that are the rows of a table; empty if its rows are something else."""
    return await name_stores(tx, scope.organization_id, store_ids) if by is By.STORE else {}
