"""Loads the sales that `regulars analyse sales` and `stores` print: from stored totals, or for the members of a segment
from the analysis process."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any
from uuid import UUID

from regulars.analytics.sales_figures import By, Progress, SalesFigures, read_sales
from regulars.cli.analyse_scope import Scope, ScopeAnalysis, open_analysis
from regulars.cli.analyse_tables import PrintedTable, make_sales_table
from regulars.cli.output import CommandError, ExitCode
from regulars.columns import questions
from regulars.kit.db import Database
from regulars.kit.ids import STORE
from regulars.kit.settings import Settings
from regulars.sales.totals.model import PerCurrency, add_up
from regulars.stores.find import name_stores

_LoadFigures = Callable[[By, tuple[UUID, ...] | None], Awaitable[SalesFigures]]


async def load_sales(pool: Database, settings: Settings, scope: Scope, by: By) -> PrintedTable:
    if by is By.HOUR:
        _check_hours(scope)
    if by is By.STORE:
        return await load_stores(pool, settings, scope, by)
    async with _open_figures(pool, settings, scope) as load:
        figures = await load(by, scope.store_ids)
    rows = [({by.value: _encode_key(key)}, sums) for key, sums in figures.rows.items()]
    return _make_table([by.value], rows, figures, scope)


async def load_stores(pool: Database, settings: Settings, scope: Scope, by: By) -> PrintedTable:
    """Load the sales of each store, in the whole period or by day, week or month."""
    is_divided = by in {By.DAY, By.WEEK, By.MONTH}
    async with _open_figures(pool, settings, scope) as load:
        figures = await load(By.STORE, scope.store_ids)
        by_store: dict[UUID, Mapping[Any, PerCurrency]] = {
            store_id: (await load(by, (store_id,))).rows if is_divided else {None: sums}
            for store_id, sums in figures.rows.items()
        }
    async with pool.reading() as tx:
        names = await name_stores(tx, scope.organization_id, by_store)
    rows = [
        (
            {
                "store": STORE.encode(store_id),
                "name": names.get(store_id, ""),
                **({by.value: _encode_key(key)} if is_divided else {}),
            },
            sums,
        )
        for store_id, divided in by_store.items()
        for key, sums in divided.items()
    ]
    return _make_table(["store", "name", *([by.value] if is_divided else [])], rows, figures, scope)


def _check_hours(scope: Scope) -> None:
    if scope.members is not None:
        raise CommandError(
            "Sales of a segment are counted by day or longer, by store or by currency.", code=ExitCode.USAGE
        )
    if scope.period.days > 1:
        raise CommandError("--by hour: choose one day, the same with --from and --to.", code=ExitCode.USAGE)


@asynccontextmanager
async def _open_figures(pool: Database, settings: Settings, scope: Scope) -> AsyncIterator[_LoadFigures]:
    """Stored totals that are loaded here are all of one snapshot."""
    if scope.members is not None:
        async with open_analysis(pool, settings, scope) as analysis:
            yield partial(_query_analysis, analysis, scope)
        return
    first, last = scope.period.first, scope.period.last
    async with pool.snapshot() as tx:
        yield lambda by, store_ids: read_sales(
            tx, scope.organization_id, first=first, last=last, by=by, store_ids=store_ids
        )


async def _query_analysis(
    analysis: ScopeAnalysis, scope: Scope, by: By, store_ids: tuple[UUID, ...] | None
) -> SalesFigures:
    question = questions.SalesQuestion(
        period=scope.days,
        by=by.value if by is not By.CURRENCY else "month",  # type: ignore[arg-type]  # hours are refused above
        store_ids=store_ids,
    )
    answer = await analysis.answer(question)
    totals = add_up(answer.whole.items())
    rows: dict[Any, PerCurrency] = {row.store_id or row.first: add_up(row.sums.items()) for row in answer.rows}
    if by is By.CURRENCY:
        rows = {currency: PerCurrency({currency: sums}) for currency, sums in totals.by_net_sales()}
    progress = Progress(as_of=answer.as_of, is_behind=False, filled_until=None)
    return SalesFigures(rows=rows, total=totals, progress=progress)


def _encode_key(key: object) -> str:
    return key.isoformat() if isinstance(key, date) else str(key)


def _make_table(
    keys: list[str], rows: list[tuple[dict[str, str], PerCurrency]], figures: SalesFigures, scope: Scope
) -> PrintedTable:
    progress = figures.progress
    table = make_sales_table(keys, rows, figures.total, scope.currency, as_of=progress.as_of)
    return replace(table, filled_until=progress.filled_until)
