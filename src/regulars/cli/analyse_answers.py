"""`regulars analyse customers` and `products`: query the analysis process and print a table, JSON or CSV."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, cast, get_args

import typer

from regulars.analytics.segment_conditions import resolve_members
from regulars.cli.analyse_scope import (
    DEADLINE_S,
    AsCsv,
    From,
    OfSegment,
    OfStores,
    PrintedTable,
    Scope,
    To,
    find_scope,
    rounded,
)
from regulars.cli.output import CommandError, ExitCode, pick
from regulars.cli.runner import AsJson, OfOrganization, run_on_pool
from regulars.kit.db import Database
from regulars.kit.ids import STORE
from regulars.kit.settings import Settings
from regulars.sales.model import Currency
from regulars.segments.analysis import questions
from regulars.segments.analysis.client import running
from regulars.segments.columns.lifecycle import need_columns
from regulars.stores.find import name_stores


class CustomersBy(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    COHORT = "cohort"
    RFM = "rfm"


OfCurrency = Annotated[str, typer.Option("--currency", help="EUR, GBP, USD or CHF.")]


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
                return _cohort_table(await _query_analysis(pool, settings, scope, question))
            case CustomersBy.RFM:
                question = questions.RfmQuestion(currency=currency_code, store_ids=scope.store_ids)
                return _rfm_table(await _query_analysis(pool, settings, scope, question))
            case _:
                bucket = cast("questions.Bucket", by.value)
                question = questions.CustomersQuestion(period=scope.days, by=bucket, store_ids=scope.store_ids)
                return _customer_table(await _query_analysis(pool, settings, scope, question), bucket)

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)


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
        return _product_table(answer, by, {STORE.encode(store_id): name for store_id, name in names.items()})

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


def _customer_table(answer: questions.CustomersAnswer, by: questions.Bucket) -> PrintedTable:
    rows = [{by: figures.first.isoformat(), **_customer_figures(figures)} for figures in answer.buckets]
    totals = [
        {
            **_customer_figures(answer.whole),
            "tickets": answer.tickets,
            "identified": answer.identified,
            "median_days_between": answer.intervals.median_days,
        }
    ]
    return _make_table(rows, totals, answer)


def _customer_figures(figures: questions.CustomerFigures) -> dict[str, Any]:
    return {
        **pick(figures, "customers", "new", "returning", "repeated"),
        "repeat_rate": rounded(figures.repeat_rate),
        **_cents("new_net_cents", figures.new_net_cents),
        **_cents("returning_net_cents", figures.returning_net_cents),
    }


def _cohort_table(answer: questions.CohortsAnswer) -> PrintedTable:
    rows = [
        {
            "cohort": cohort.first.isoformat(),
            "customers": cohort.customers,
            **pick(month, "month", "is_over", "bought", "bought_so_far"),
            **_cents("net_cents", month.net_cents),
        }
        for cohort in answer.cohorts
        for month in cohort.months
    ]
    return _make_table(rows, [], answer)


def _rfm_table(answer: questions.RfmAnswer) -> PrintedTable:
    rows = [
        {
            "group": group.name,
            "customers": group.customers,
            **_bounds_by_name("recency_days", group.recency_days),
            **_bounds_by_name("purchase_days", group.purchase_days),
            **_bounds_by_name("net_cents", group.net),
            **_cents("net_cents", group.net_cents),
        }
        for group in answer.groups
    ]
    return _make_table(rows, [{"customers": answer.customers, **_cents("net_cents", answer.net_cents)}], answer)


def _product_table(answer: questions.ProductsAnswer, by: str, stores: Mapping[str, str]) -> PrintedTable:
    rows = [
        {
            by: row.group.value,
            "kind": row.group.kind,
            "name": row.name or stores.get(row.group.value),
            **_product_figures(row.figures),
        }
        for row in answer.rows
    ]
    return _make_table(rows, [{**_product_figures(answer.whole), "groups": answer.groups}], answer)


def _product_figures(figures: questions.ProductFigures) -> dict[str, Any]:
    return {
        "net_cents": figures.net_cents,
        "units_sold": figures.sold_millionths / questions.MILLIONTHS,
        "units_returned": figures.returned_millionths / questions.MILLIONTHS,
        "return_rate": rounded(figures.return_rate),
        "tickets": figures.tickets,
        "customers": figures.customers,
    }


def _cents(name: str, money: questions.Money) -> dict[str, int]:
    return {f"{name}_{currency}": cents for currency, cents in sorted(money.items())}


def _bounds_by_name(name: str, bounds: questions.Range) -> dict[str, int | None]:
    return {f"{name}_from": bounds.low, f"{name}_to": bounds.high}


def _make_table(rows: Sequence[dict[str, Any]], totals: Sequence[dict[str, Any]], answer: Any) -> PrintedTable:
    columns = list(dict.fromkeys(name for row in rows or totals for name in row))
    return PrintedTable(columns=columns, rows=rows, totals=totals, as_of=answer.as_of)
