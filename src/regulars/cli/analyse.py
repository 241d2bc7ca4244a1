"""`regulars analyse sales` and `stores`: print sums of sales per period, store or currency, as table, JSON or CSV."""

from collections.abc import Mapping
from dataclasses import replace
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
        table = await _make_table(tx, scope, by, figures.rows, figures.total, as_of=progress.as_of)
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
        return await _make_table(tx, scope, by, rows, totals, as_of=answer.as_of)


async def _make_table(
    tx: Tx, scope: Scope, by: By, rows: Mapping[Any, PerCurrency], totals: PerCurrency, *, as_of: datetime
) -> PrintedTable:
    """Make a table of sums, whose rows are stores, with their names, or days, hours or currencies."""
    names = await name_stores(tx, scope.organization_id, rows.keys()) if by is By.STORE else {}
    printed_rows = [
        {
            by.value: _encode_key(key),
            **({"name": names.get(key, "")} if by is By.STORE else {}),
            "currency": currency,
            **_as_data(sums),
        }
        for key, total in rows.items()
        for currency, sums in total.by_net_sales()
    ]
    name_column = ("name",) if by is By.STORE else ()
    return PrintedTable(
        columns=list(dict.fromkeys([by.value, *name_column, "currency", *_as_data(Sums())])),
        rows=printed_rows,
        totals=[{"currency": currency, **_as_data(sums)} for currency, sums in totals.by_net_sales()],
        as_of=as_of,
    )


def _encode_key(key: object) -> str:
    if isinstance(key, UUID):
        return ids.STORE.encode(key)
    return key.isoformat() if isinstance(key, date) else str(key)


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
