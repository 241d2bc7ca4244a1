"""`regulars analyse`: the figures of the pages of Analyse, as a table, as JSON or as CSV."""

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import typer

from regulars.analytics.period import Period, read_period
from regulars.analytics.sales_figures import By, read_sales
from regulars.analytics.segment_conditions import resolve_members
from regulars.cli.output import CommandError, Exit, err, print_json, print_table
from regulars.cli.runner import AsJson, OfOrganization, find_organization, read_id, run_on_pool
from regulars.kit import ids
from regulars.kit.clock import format_timestamp
from regulars.kit.db import Database, Tx
from regulars.kit.settings import Settings
from regulars.kit.text import safe_cell
from regulars.organizations.particulars import find_settings
from regulars.sales.totals.model import PerCurrency, Sums, add_up
from regulars.segments.analysis import questions
from regulars.segments.analysis.client import running
from regulars.segments.analysis.protocol import SegmentQuery
from regulars.stores.find import find_stores, name_stores

app = typer.Typer(no_args_is_help=True)

# Longer than a page would wait: the first answer after a start reads the columns.
DEADLINE_S: Final = 120.0

From = Annotated[
    str, typer.Option("--from", metavar="DAY", help="First day, such as 2026-11-16; 30 days ago if not given.")
]
To = Annotated[str, typer.Option("--to", metavar="DAY", help="Last day; today if not given.")]
OfSegment = Annotated[
    str | None, typer.Option("--segment", help="Only sales of the members of this segment (seg_ id).")
]
OfStores = Annotated[
    list[str] | None, typer.Option("--store", help="Only this store: external id or store_ id. May be repeated.")
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Write CSV.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a command is about: an organization, its days, and some of its stores and customers."""

    organization_id: UUID
    period: Period
    store_ids: Sequence[UUID] | None
    # None: all sales, also those without a customer.
    members: SegmentQuery | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SalesTable:
    """Named rows, and their sum."""

    rows: Mapping[str, PerCurrency]
    names: Mapping[str, str]
    whole: PerCurrency
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

    async def work(pool: Database, settings: Settings) -> SalesTable:
        scope = await _find_scope(pool, organization, first, last, segment=segment, stores=store)
        return await _load_sales(pool, settings, scope, by)

    _print_sales(run_on_pool(work), by, as_json=as_json, as_csv=as_csv)


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


async def _find_scope(
    pool: Database, organization: str, first: str, last: str, *, segment: str | None, stores: Sequence[str] | None
) -> Scope:
    async with pool.transaction() as tx:
        found = await find_organization(tx.connection, organization)
        zone = ZoneInfo((await find_settings(tx.connection, found.id)).time_zone)
        period, faults = read_period({"from": first, "to": last}, tx.now.astimezone(zone).date())
        for name, sentence in faults.items():
            raise CommandError(f"--{name}: {sentence}", code=Exit.USAGE)
        members = None
        if segment is not None:
            members = await resolve_members(tx, found.id, read_id(ids.SEGMENT, segment))
        store_ids = None if not stores else await _find_stores(tx, found.id, stores)
        return Scope(organization_id=found.id, period=period, store_ids=store_ids, members=members)


async def _find_stores(tx: Tx, organization_id: UUID, given: Sequence[str]) -> list[UUID]:
    wanted = {ids.read_reference(ids.STORE, text): text for text in given}
    found = await find_stores(tx, organization_id, wanted)
    for reference, text in wanted.items():
        if reference not in found:
            raise CommandError(f"There is no store {text}.")
    return [store.id for store in found.values()]


async def _load_sales(pool: Database, settings: Settings, scope: Scope, by: By) -> SalesTable:
    """From the totals; from the columns for the members of a segment."""
    first, last = scope.period.first, scope.period.last
    if scope.members is not None:
        return await _ask_sales(pool, settings, scope, by)
    async with pool.snapshot() as tx:
        figures = await read_sales(tx, scope.organization_id, first=first, last=last, by=by, store_ids=scope.store_ids)
        rows = {_spell(key): total for key, total in figures.rows.items()}
        return SalesTable(
            rows=rows,
            names=await _name(tx, scope.organization_id, rows, by),
            whole=figures.whole,
            as_of=figures.progress.as_of,
            filled_until=figures.progress.filled_until,
        )


async def _ask_sales(pool: Database, settings: Settings, scope: Scope, by: By) -> SalesTable:
    if scope.members is None or by is By.HOUR:
        raise CommandError("Sales of a segment are counted by day or longer, by store or by currency.", code=Exit.USAGE)
    question = questions.SalesQuestion(
        period=questions.Period(scope.period.first, scope.period.last),
        by=by.value if by is not By.CURRENCY else "month",  # type: ignore[arg-type]  # hours are refused above
        store_ids=None if scope.store_ids is None else tuple(scope.store_ids),
    )
    async with running(settings) as analysis:
        answer = await analysis.answer(scope.organization_id, scope.members, question, deadline_s=DEADLINE_S)
    whole = add_up(answer.whole.items())
    rows = {_spell(row.store_id or row.first): add_up(row.sums.items()) for row in answer.rows}
    if by is By.CURRENCY:
        rows = {currency: PerCurrency({currency: sums}) for currency, sums in whole.by_size()}
    async with pool.reading() as tx:
        names = await _name(tx, scope.organization_id, rows, by)
    return SalesTable(rows=rows, names=names, whole=whole, as_of=answer.as_of)


def _spell(key: object) -> str:
    if isinstance(key, UUID):
        return ids.STORE.encode(key)
    return key.isoformat() if isinstance(key, date) else str(key)


async def _name(tx: Tx, organization_id: UUID, rows: Mapping[str, object], by: By) -> dict[str, str]:
    if by is not By.STORE:
        return {}
    wanted = {store_id: text for text in rows if (store_id := ids.STORE.decode(text)) is not None}
    return {wanted[store_id]: name for store_id, name in (await name_stores(tx, organization_id, wanted)).items()}


def _print_sales(table: SalesTable, by: By, *, as_json: bool, as_csv: bool) -> None:
    rows = [
        {
            by.value: key,
            **({"name": table.names.get(key, "")} if by is By.STORE else {}),
            "currency": currency,
            **_as_data(sums),
        }
        for key, total in table.rows.items()
        for currency, sums in total.by_size()
    ]
    if as_json:
        whole = [{"currency": currency, **_as_data(sums)} for currency, sums in table.whole.by_size()]
        print_json({"as_of": table.as_of, "filled_until": table.filled_until, "rows": rows, "whole": whole})
        return
    names = ("name",) if by is By.STORE else ()
    columns = list(dict.fromkeys([by.value, *names, "currency", *_as_data(Sums())]))
    cells = [["" if row[column] is None else str(row[column]) for column in columns] for row in rows]
    if as_csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(columns)
        writer.writerows([safe_cell(cell) for cell in row] for row in cells)
        return
    print_table([column.replace("_", " ").upper() for column in columns], cells)
    err.print(f"As of {format_timestamp(table.as_of)}.", markup=False)
    if table.filled_until is not None:
        err.print(f"Older sales are being counted, so far to {format_timestamp(table.filled_until)}.", markup=False)


def _as_data(sums: Sums) -> dict[str, Any]:
    return {
        "net_cents": sums.net_cents,
        "gross_cents": sums.gross_cents,
        "returned_cents": sums.returned_cents,
        "discount_cents": sums.discount_cents,
        "tax_cents": sums.tax_cents,
        "tickets": sums.tickets,
        "purchases": sums.purchases,
        "returns": sums.returns,
        "identified": sums.identified,
        "units": _number(sums.units),
        "returned_units": _number(sums.returned_units),
        "lines": sums.lines,
        "ticket_cents": sums.ticket_cents,
        "units_per_ticket": _rounded(sums.units_per_ticket),
        "return_rate": _rounded(sums.return_rate),
        "return_rate_by_tickets": _rounded(sums.return_rate_by_tickets),
        "discount_rate": _rounded(sums.discount_rate),
        "identified_rate": _rounded(sums.identified_rate),
    }


def _number(value: Any) -> int | float:
    return int(value) if value == int(value) else float(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
