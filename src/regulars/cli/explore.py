"""`regulars explore`: print a table of figures, or a question that was saved in Explore, as text, JSON or CSV."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Final, cast, get_args
from urllib.parse import parse_qs

import typer

from regulars.analytics.figure_table import make_table
from regulars.analytics.figures import answer_query, read_totals
from regulars.analytics.period import Unit, comparison_of, read_compare
from regulars.analytics.query import NAMED, NET, SEGMENT, Query, read_dimension, read_measure
from regulars.analytics.saved_views import find_shared_view
from regulars.analytics.segment_conditions import resolve_members
from regulars.cli import figure_tables as tables
from regulars.cli.figure_scope import (
    DEADLINE_S,
    AllCurrencies,
    AsCsv,
    Beside,
    By,
    From,
    Measures,
    OfProduct,
    OfSegments,
    OfStores,
    Scope,
    To,
    find_scope,
    list_currencies,
)
from regulars.cli.figure_tables import PrintedTable
from regulars.cli.output import CommandError, ExitCode
from regulars.cli.runner import AsJson, OfOrganization, run_on_pool
from regulars.columns import questions
from regulars.columns.client import running
from regulars.columns.lifecycle import need_columns
from regulars.kit.db import Database
from regulars.kit.settings import Settings

EXPLORE: Final = "explore"
# The dimension of a table with one row for each currency.
TOTAL: Final = "total"
# Tables of customers, which are no sums: a customer is in one row of them, or once in each.
OF_CUSTOMERS: Final = ("customers", "cohorts", "rfm")


def explore(
    name: Annotated[
        str,
        typer.Argument(
            help=f"{', '.join((*NAMED, *OF_CUSTOMERS))}, or the name of a question that is shared in the organization."
        ),
    ],
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: By = None,
    measure: Measures = None,
    product: OfProduct = None,
    compare: Beside = None,
    currency: AllCurrencies = None,
    segment: OfSegments = None,
    store: OfStores = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show figures of sales: any measure by up to two dimensions, beside another period."""
    fields = _list_given(
        **{"from": first},
        to=last,
        by=by,
        measure=measure,
        product=product,
        compare=compare,
        currency=currency,
        segment=segment,
        store=store,
    )
    table = run_on_pool(lambda pool, settings: _load_table(pool, settings, organization, name, given=fields))
    table.print(as_json=as_json, as_csv=as_csv)


async def _load_table(
    pool: Database, settings: Settings, organization: str, name: str, *, given: dict[str, list[str]]
) -> PrintedTable:
    fields = await _find_fields(pool, organization, name) | given
    scope = await find_scope(
        pool,
        organization,
        _first(fields, "from"),
        _first(fields, "to"),
        preset=_first(fields, "period"),
        segments=fields.get("segment", []),
        stores=fields.get("store", []),
        currency=_first(fields, "currency") or None,
    )
    if name in OF_CUSTOMERS:
        return await _load_customers(pool, settings, scope, name, by=fields.get("by", ["month"]))
    return await _load(pool, settings, scope, name, fields=fields)


def _list_given(**options: str | list[str] | None) -> dict[str, list[str]]:
    """The values of each option that was given, by the name of its field in an address."""
    listed = {name: [value] if isinstance(value, str) else value or [] for name, value in options.items()}
    return {name: values for name, values in listed.items() if any(values)}


def _first(fields: dict[str, list[str]], field: str) -> str:
    return next(iter(fields.get(field, [])), "")


async def _find_fields(pool: Database, organization: str, name: str) -> dict[str, list[str]]:
    """The fields of the address of a shared question; none of a table with a name of its own."""
    if name in {*NAMED, *OF_CUSTOMERS}:
        return {}
    scope = await find_scope(pool, organization, "", "")
    async with pool.reading() as tx:
        view = await find_shared_view(tx, scope.organization_id, page=EXPLORE, name=name)
    if view is None:
        known = ", ".join((*NAMED, *OF_CUSTOMERS))
        raise CommandError(f"No shared question is called {name}; choose it, or one of {known}.", code=ExitCode.USAGE)
    fields = parse_qs(view.query)
    by = [*fields.get("rows", ["day"]), *fields.get("then", [])]
    # The page remembers compared segments while it shows other rows.
    compared = {"segment": fields["among"]} if "among" in fields and SEGMENT.kind in by else {}
    return {**fields, **compared, "by": by, "measure": fields.get("measure", [NET.name])}


async def _load(
    pool: Database, settings: Settings, scope: Scope, name: str, *, fields: dict[str, list[str]]
) -> PrintedTable:
    dimension, measures = NAMED.get(name, (None, ()))
    by = tuple(read_dimension(text) for text in fields["by"] if text != TOTAL) if "by" in fields else ()
    if dimension is not None and "by" not in fields:
        by = (dimension,)
    product = _first(fields, "product")
    query = Query(
        period=scope.period,
        by=by,
        measures=tuple(map(read_measure, fields["measure"])) if "measure" in fields else measures,
        comparison=comparison_of(scope.period, read_compare(_first(fields, "compare"), default="none")),
        store_ids=scope.store_ids,
        segment_ids=scope.segment_ids,
        groups_max=questions.GROUPS_MAX,
        products=(questions.ProductGroup(questions.ProductKey(), "value", product),) if product else (),
    )
    if query.has_lines:
        named = tuple(it for it in query.measures if it.has_lines)
        [largest, *_] = await list_currencies(pool, scope)
        query = replace(query, currency=largest, measures=query.measures if "measure" in fields else named)
    query.check()
    if query.source == "totals":
        async with pool.snapshot() as tx:
            figures = await read_totals(tx, scope.organization_id, query)
    else:
        async with running(settings) as analysis:
            figures = await answer_query(pool, analysis, scope.organization_id, query, deadline_s=DEADLINE_S)
    async with pool.reading() as tx:
        table = await make_table(tx, scope.organization_id, query, figures, only=scope.currency)
    return PrintedTable(
        columns=table.columns,
        rows=list(table.rows(table.groups)),
        totals=list(table.rows(table.totals)),
        as_of=figures.progress.as_of,
        filled_until=figures.progress.filled_until,
    )


async def _load_customers(
    pool: Database, settings: Settings, scope: Scope, name: str, *, by: list[str]
) -> PrintedTable:
    if len(scope.segment_ids) > 1:
        raise CommandError("--segment: customers are shown of one segment.", code=ExitCode.USAGE)
    async with pool.transaction() as tx:
        await need_columns(tx, scope.organization_id)
        members = await resolve_members(tx, scope.organization_id, next(iter(scope.segment_ids), None))
    async with running(settings) as analysis:
        ask = partial(analysis.answer, scope.organization_id, members, deadline_s=DEADLINE_S)
        if name == "cohorts":
            cohorts = questions.CohortsQuestion(period=scope.days, store_ids=scope.store_ids)
            return tables.make_cohort_table(await ask(cohorts), scope.currency)
        if name == "rfm":
            [measured, *_] = await list_currencies(pool, scope)
            rfm = questions.RfmQuestion(currency=measured, store_ids=scope.store_ids)
            return tables.make_rfm_table(await ask(rfm), scope.currency)
        [unit, *others] = by
        if others or unit not in get_args(Unit):
            raise CommandError("--by: customers are shown by day, week or month.", code=ExitCode.USAGE)
        bucket = cast("questions.Bucket", unit)
        question = questions.CustomersQuestion(period=scope.days, by=bucket, store_ids=scope.store_ids)
        return tables.make_customer_table(await ask(question), bucket, scope.currency)
