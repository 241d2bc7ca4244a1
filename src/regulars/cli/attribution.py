"""`regulars attribution`: show which sales are credited to SMS texts, or have the worker compute the credits again."""

import getpass
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import Annotated, Any
from uuid import UUID

import typer

from regulars.attribution.lift import Lift, merge_months, refresh_lifts, summarise
from regulars.attribution.model import Attributed, Origin
from regulars.attribution.month_sums import AttributedByCurrency, sum_by
from regulars.attribution.period_results import load_quarters, load_results, origin_of
from regulars.attribution.recompute import count_waiting, find_recompute, request_recompute
from regulars.campaigns.manage import name_campaigns
from regulars.cli.figure_scope import AsCsv, From, To, find_scope
from regulars.cli.figure_tables import PrintedTable
from regulars.cli.output import print_outcome
from regulars.cli.runner import AsJson, CommandContext, OfOrganization, change, run_on_pool
from regulars.journeys.runs.lists import name_journeys
from regulars.kit import ids
from regulars.kit.db import Database, Tx
from regulars.kit.settings import Settings
from regulars.links.origin_kind import OriginKind

app = typer.Typer(no_args_is_help=True)

# Counting the waiting customers stops here, so that the command returns quickly.
WAITING_MAX = 100_000
# The kind of rows that measure the texts of all campaigns and journeys together.
GLOBAL_HOLDOUT = "global_holdout"
_LIFT_COLUMNS = ("lift", "extra_net_cents", "extra_low_cents", "extra_high_cents", "sample_ratio_alarm")
_ID_KINDS = {OriginKind.CAMPAIGN: ids.CAMPAIGN, OriginKind.JOURNEY: ids.JOURNEY}


class GroupBy(StrEnum):
    ORIGIN = "origin"
    MONTH = "month"


@app.command()
def show(
    *,
    organization: OfOrganization,
    first: From = "",
    last: To = "",
    by: Annotated[
        GroupBy, typer.Option(help="A row for each campaign and journey, or for each month.")
    ] = GroupBy.ORIGIN,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the tickets and the net that are credited to the texts of these days, beside what was extra by holdout."""

    async def work(pool: Database, _settings: Settings) -> PrintedTable:
        scope = await find_scope(pool, organization, first, last)
        async with pool.snapshot() as tx:
            return await _load(tx, scope.organization_id, scope.period.first, scope.period.last, by)

    run_on_pool(work).print(as_json=as_json, as_csv=as_csv)


@app.command()
def recompute(organization: OfOrganization, as_json: AsJson = False) -> None:
    """Compute anew all credits that are not frozen, and all lifts that are not final; the worker does it."""

    async def work(context: CommandContext) -> dict[str, Any]:
        running = await find_recompute(context.tx, context.organization_id)
        await request_recompute(context.tx, context.organization_id, by=getpass.getuser())
        await refresh_lifts(context.tx, context.organization_id)
        return {
            "was_running": running is not None and running.due_at is not None,
            "customers_waiting": await count_waiting(context.tx, context.organization_id, limit=WAITING_MAX),
        }

    print_outcome(
        change(organization, work, "attribution.recompute", ""),
        "The worker computes the credits of the last 60 days anew.",
        as_json=as_json,
    )


async def _load(tx: Tx, organization_id: UUID, first: date, last: date, by: GroupBy) -> PrintedTable:
    """Load the credits and the lifts by month, or by origin: the campaign or journey that sent the texts."""
    results = await load_results(tx, organization_id, first=first, last=last)
    quarters = await load_quarters(tx, organization_id, first=first, last=last)
    names = await _load_names(tx, organization_id, results.origins)
    key_of_lift: Callable[[Lift], Any] = results.month_of if by is GroupBy.MONTH else origin_of
    sums_by_key = sum_by(results.sums, attrgetter(by.value))
    lifts_by_key: defaultdict[Any, list[Lift]] = defaultdict(list)
    for lift in results.lifts:
        lifts_by_key[key_of_lift(lift)].append(lift)
    rows = [
        {**_describe_key(key, names), **row}
        for key in {**sums_by_key, **lifts_by_key}
        for row in _as_rows(sums_by_key.get(key, {}), lifts_by_key[key])
    ]
    if by is GroupBy.MONTH:
        rows.sort(key=itemgetter("month", "currency"))
    else:
        rows.sort(key=lambda row: (row["currency"], -row["net_cents"]))
    totals = sum_by(results.sums, lambda _sums: "all").get("all", {})
    key_columns = ["month"] if by is GroupBy.MONTH else ["kind", "id", "name"]
    return PrintedTable(
        columns=[*key_columns, "currency", *Attributed._fields, *_LIFT_COLUMNS],
        rows=[*rows, *_quarter_rows(quarters, by)],
        totals=_as_rows(totals, results.lifts),
        as_of=tx.now,
    )


def _describe_key(key: Origin | date, names: Mapping[UUID, str]) -> dict[str, Any]:
    if isinstance(key, date):
        return {"month": f"{key:%Y-%m}"}
    return {"kind": key.kind.value, "id": _encode_origin(key), "name": names.get(key.id, "")}


def _lift_as_data(lifts: Sequence[Lift], currency: str) -> dict[str, Any]:
    """Return the additional net sales with their 95 % interval, empty if no holdout measured them, and whether the
    sizes of the groups cannot be explained by chance."""
    merged = merge_months(lifts, currency)
    summary = summarise(merged, currency)
    has_alarm = any(it.has_sample_ratio_alarm for it in merged)
    extra = summary.extra_cents
    values = (None, None, None) if extra is None else tuple(map(round, (extra.value, extra.low, extra.high)))
    return dict(zip(_LIFT_COLUMNS, (summary.state, *values, has_alarm), strict=True))


def _as_rows(sums: AttributedByCurrency, lifts: Sequence[Lift]) -> list[dict[str, Any]]:
    """One row for each currency with credits or a lift."""
    currencies = sums.keys() | {it.currency for it in lifts if it.currency is not None}
    return [
        {"currency": it, **sums.get(it, Attributed())._asdict(), **_lift_as_data(lifts, it)}
        for it in sorted(currencies)
    ]


def _quarter_rows(quarters: Sequence[Lift], by: GroupBy) -> list[dict[str, Any]]:
    """The lifts of all texts together: one row for each quarter of the global holdout and currency; without a currency
    if there is no result. The sales are those of the other rows again, so no total has them."""
    rows = []
    for lift in sorted(quarters, key=lambda it: (it.source.period, it.currency or "")):
        quarter = lift.source.period
        key = {"month": quarter} if by is GroupBy.MONTH else {"kind": GLOBAL_HOLDOUT, "id": None, "name": quarter}
        lift_data = _lift_as_data([lift], lift.currency or "")
        rows.append({**key, "currency": lift.currency, **dict.fromkeys(Attributed._fields), **lift_data})
    return rows


def _encode_origin(origin: Origin) -> str | None:
    kind = _ID_KINDS.get(origin.kind)
    return None if kind is None else kind.encode(origin.id)


async def _load_names(tx: Tx, organization_id: UUID, origins: Collection[Origin]) -> dict[UUID, str]:
    campaigns = [origin.id for origin in origins if origin.kind is OriginKind.CAMPAIGN]
    journeys = [origin.id for origin in origins if origin.kind is OriginKind.JOURNEY]
    return {
        **await name_campaigns(tx, organization_id, campaigns),
        **await name_journeys(tx, organization_id, journeys),
    }
