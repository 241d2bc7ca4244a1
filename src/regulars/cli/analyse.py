"""`regulars analyse sales` and `stores`: print sums of sales per period, store or currency, as table, JSON or CSV."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from regulars.analytics.sales_figures import By, read_sales
from regulars.cli.analyse_answers import customers, products
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
from regulars.kit import ids
from regulars.kit.db import Database, Tx
from regulars.kit.settings import Settings
from regulars.sales.totals.model import PerCurrency, Sums, add_up
from regulars.segments.analysis import questions
from regulars.segments.analysis.client import running
from regulars.stores.find import name_stores

app = typer.Typer(no_args_is_help=True)
_RATES = ("units_per_ticket", "return_rate", "return_rate_by_tickets", "discount_rate", "identified_rate")
app.command()(customers)
app.command()(products)


@dataclass(frozen=True, slots=True, kw_only=True)
class SalesRows:
    """Sums of sales and store names by row key, and the totals; without sales before `filled_until`, if it is set."""

    rows: Mapping[str, PerCurrency]
    names: Mapping[str, str]
    totals: PerCurrency
    as_of: datetime
    filled_until: datetime | None = None


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

    async def work(pool: Database, settings: Settings) -> SalesRows:
        scope = await find_scope(pool, organization, first, last, segment=segment, stores=store)
        return await _load_sales(pool, settings, scope, by)

    _sales_table(run_on_pool(work), by).print(as_json=as_json, as_csv=as_csv)


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


async def _load_sales(pool: Database, settings: Settings, scope: Scope, by: By) -> SalesRows:
    """Read the stored totals of sales; for the members of a segment, query the analysis process."""
    first, last = scope.period.first, scope.period.last
    if scope.members is not None:
        return await _query_segment_sales(pool, settings, scope, by)
    async with pool.snapshot() as tx:
        figures = await read_sales(tx, scope.organization_id, first=first, last=last, by=by, store_ids=scope.store_ids)
        rows = {_encode_key(key): total for key, total in figures.rows.items()}
        return SalesRows(
            rows=rows,
            names=await _load_store_names(tx, scope.organization_id, rows, by),
            totals=figures.total,
            as_of=figures.progress.as_of,
            filled_until=figures.progress.filled_until,
        )


async def _query_segment_sales(pool: Database, settings: Settings, scope: Scope, by: By) -> SalesRows:
    if scope.members is None or by is By.HOUR:
        raise CommandError(
            "Sales of a segment are counted by day or longer, by store or by currency.", code=ExitCode.USAGE
        )
    question = questions.SalesQuestion(
        period=scope.days,
        by=by.value if by is not By.CURRENCY else "month",  # type: ignore[arg-type]  # hours are refused above
        store_ids=scope.store_id_tuple,
    )
    async with running(settings) as analysis:
        answer = await analysis.answer(scope.organization_id, scope.members, question, deadline_s=DEADLINE_S)
    totals = add_up(answer.whole.items())
    rows = {_encode_key(row.store_id or row.first): add_up(row.sums.items()) for row in answer.rows}
    if by is By.CURRENCY:
        rows = {currency: PerCurrency({currency: sums}) for currency, sums in totals.by_net_sales()}
    async with pool.reading() as tx:
        names = await _load_store_names(tx, scope.organization_id, rows, by)
    return SalesRows(rows=rows, names=names, totals=totals, as_of=answer.as_of)


def _encode_key(key: object) -> str:
    if isinstance(key, UUID):
        return ids.STORE.encode(key)
    return key.isoformat() if isinstance(key, date) else str(key)


async def _load_store_names(tx: Tx, organization_id: UUID, rows: Mapping[str, object], by: By) -> dict[str, str]:
    if by is not By.STORE:
        return {}
    keys_by_store_id = {store_id: key for key in rows if (store_id := ids.STORE.decode(key)) is not None}
    names = await name_stores(tx, organization_id, keys_by_store_id)
    return {keys_by_store_id[store_id]: name for store_id, name in names.items()}


def _sales_table(sales_rows: SalesRows, by: By) -> PrintedTable:
    rows = [
        {
            by.value: key,
            **({"name": sales_rows.names.get(key, "")} if by is By.STORE else {}),
            "currency": currency,
            **_as_data(sums),
        }
        for key, total in sales_rows.rows.items()
        for currency, sums in total.by_net_sales()
    ]
    names = ("name",) if by is By.STORE else ()
    return PrintedTable(
        columns=list(dict.fromkeys([by.value, *names, "currency", *_as_data(Sums())])),
        rows=rows,
        totals=[{"currency": currency, **_as_data(sums)} for currency, sums in sales_rows.totals.by_net_sales()],
        as_of=sales_rows.as_of,
        filled_until=sales_rows.filled_until,
    )


def _as_data(sums: Sums) -> dict[str, Any]:
    return {
        **pick(sums, "net_cents", "gross_cents", "returned_cents", "discount_cents", "tax_cents"),
        **pick(sums, "tickets", "purchases", "returns", "identified"),
        "units": _int_if_whole(sums.units),
        "returned_units": _int_if_whole(sums.returned_units),
        **pick(sums, "lines", "ticket_cents"),
        **{name: rounded(rate) for name, rate in pick(sums, *_RATES).items()},
    }


def _int_if_whole(value: Any) -> int | float:
    return int(value) if value == int(value) else float(value)
