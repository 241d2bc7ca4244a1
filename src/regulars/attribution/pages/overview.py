"""The attribution overview, as a page and a CSV file: net sales attributed to texts beside extra net sales measured
with a holdout, with a row for each campaign and journey, or for each month."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from regulars.accounts.audit.exports import export_csv
from regulars.analytics.period import FIRST_DAY, preset_period
from regulars.analytics.saved_views import list_views
from regulars.attribution.model import Attributed
from regulars.attribution.pages.definitions import DEFINITIONS
from regulars.attribution.pages.filters import GROUPS, KINDS, STATES, AttributionView, read_view
from regulars.attribution.pages.groups import Group, Overview, combine_groups, load_overview
from regulars.attribution.pages.headline import Headline, write_headline
from regulars.attribution.pages.lift_view import (
    LiftView,
    Verdict,
    in_cents,
    judge,
    view_periods,
    view_verdict,
)
from regulars.attribution.pages.links import tickets_url
from regulars.attribution.sent_texts import SentTexts, find_last_sent_day, parts_by_country
from regulars.texts.cost import estimate
from regulars.texts.settings.model import Price
from regulars.web.charts import AxisLabel, Whisker, whisker_axis
from regulars.web.format import NOTHING, Format
from regulars.web.render import render
from regulars.web.visit import Visit

ROWS_SHOWN: Final = 100
CSV_HEADER: Final = (
    "kind", "key", "name", "currency", "attributed_net_cents", "attributed_gross_cents", "unmatched_returns_cents",
    "tickets", "texts", "cost", "extra_net_cents", "extra_low_cents", "extra_high_cents", "result",
    "held_out", "sample_ratio_alarm",
)  # fmt: skip
# The states of results that each choice of the state filter includes.
_SHOWN_STATES: Final = {
    "final": {"final"},
    "provisional": {"provisional"},
    "unmeasured": {"open", "too_few", "outside", "no_holdout", "no_text"},
}


class Row(NamedTuple):
    group: Group
    sums: Attributed
    net: str
    cost: str
    note: str
    lift: LiftView
    mark: Whisker | None = None

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def url(self) -> str:
        return self.group.url

    @property
    def tickets_url(self) -> str:
        return self.group.tickets_url if self.sums.tickets else ""


class OverviewTable(NamedTuple):
    currency: str
    heading: str
    sort: str
    rows: Sequence[Row]
    axis: Sequence[AxisLabel]
    foot: str
    is_truncated: bool


async def show_overview(visit: Visit) -> Response:
    view = read_view(visit)
    values: dict[str, Any] = {"view": view, "form": view.form, "kinds": KINDS, "states": STATES, "groups": GROUPS}
    async with visit.database.reading() as tx:
        values["views"] = await list_views(tx, visit.organization_id, visit.user.id, page=view.page)
        if view.form.is_refused:
            return render(visit, "attribution/overview.html", status=400, table=None, defined=DEFINITIONS, **values)
        overview = await load_overview(tx, visit, view)
        last_sent_day = await find_last_sent_day(tx, visit.organization_id, since=FIRST_DAY)
    currencies = overview.currencies
    currency = _choose_currency(view, currencies)
    raw_rows = {it: _raw_rows(view, overview, it) for it in dict.fromkeys([currency, *currencies])}
    table = make_table(visit.format, view, overview, currency, raw_rows[currency])
    headlines = [_headline(visit, view, overview, *it) for it in raw_rows.items()]
    return render(
        visit,
        "attribution/overview.html",
        table=table,
        currencies=currencies,
        headline=headlines[0],
        others=headlines[1:],
        # The lift of all texts together, measured with the organization's global holdout.
        quarters=view_periods(visit.format, overview.quarters, table.currency),
        empty_state=_empty_state(visit, view, last_sent_day),
        defined=DEFINITIONS,
        **values,
    )


async def export_overview(visit: Visit) -> Response:
    """A CSV file with all rows, in the order and the currency that the page shows."""
    view = read_view(visit).require_readable()
    async with visit.database.reading() as tx:
        overview = await load_overview(tx, visit, view)
    currency = _choose_currency(view, overview.currencies)
    raw_rows = _raw_rows(view, overview, currency)
    table = make_table(visit.format, view, overview, currency, raw_rows, with_all_rows=True)

    async def csv_rows() -> AsyncIterator[list[str]]:
        for row in table.rows:
            yield _csv_row(row, table.currency, overview)

    return export_csv(visit, "analyse.export", "attribution.csv", CSV_HEADER, csv_rows())


class EmptyState(NamedTuple):
    """The text of a page without rows, and a link to a page that may have some."""

    title: str
    text: str
    act: str
    url: str


def _empty_state(visit: Visit, view: AttributionView, last_sent_day: date | None) -> EmptyState:
    if any(view.value(name) for name in ("kind", "state", "currency")):
        text = "No campaign or journey of this period fits the filters."
        url = view.url(kind=None, state=None, currency=None)
        return EmptyState("Nothing fits these filters", text, "Show all of the period", url)
    if last_sent_day is None:
        text = "After the first campaign or journey, this page shows what its texts brought, net of returns."
        return EmptyState("No texts yet", text, "Open campaigns", visit.url("/campaigns"))
    text = f"No text was sent {visit.format.period(view.period.first, view.period.last)}."
    last = min(last_sent_day, view.today)
    days = preset_period("90d", last)
    url = view.url(period=None, from_=days.first.isoformat(), to=days.last.isoformat())
    return EmptyState("No texts in this period", text, f"Show the 90 days up to {visit.format.full_day(last)}", url)


def _choose_currency(view: AttributionView, currencies: Sequence[str]) -> str:
    return view.value("currency") or next(iter(currencies), "EUR")


class RawRow(NamedTuple):
    """A row before formatting. Formatting takes most of the time, so only the shown rows are formatted."""

    group: Group
    sums: Attributed
    verdict: Verdict


def _raw_rows(view: AttributionView, overview: Overview, currency: str) -> list[RawRow]:
    """The groups with amounts in this currency, and the groups with sent texts that have amounts in no currency."""
    raw_rows = [
        RawRow(group, group.total(currency), judge(group.lifts, currency))
        for group in overview.groups
        if currency in group.currencies or not group.currencies
    ]
    state = view.value("state")
    return [raw_row for raw_row in raw_rows if not state or _matches_state(raw_row.verdict, state)]


def _matches_state(verdict: Verdict, state: str) -> bool:
    """A result without a shown effect ("unclear") is also final or provisional."""
    if verdict.state == "unclear":
        return state == ("provisional" if verdict.is_provisional else "final")
    return verdict.state in _SHOWN_STATES[state]


def _sort(view: AttributionView, raw_rows: list[RawRow]) -> list[RawRow]:
    sort = view.value("sort")
    by_name = sorted(raw_rows, key=lambda raw_row: raw_row.group.name.casefold())
    if sort == "name":
        return by_name
    if view.value("by") == "month" and not sort:
        return raw_rows
    orders: dict[str, Callable[[RawRow], float]] = {
        "cost": lambda raw_row: raw_row.group.texts,
        "extra": lambda raw_row: raw_row.verdict.estimate.value if raw_row.verdict.estimate else float("-inf"),
    }
    order = orders.get(sort, _net_of)
    return sorted(by_name, key=lambda raw_row: -order(raw_row))


def _net_of(raw_row: RawRow) -> float:
    return raw_row.sums.net_cents


def make_table(
    formats: Format,
    view: AttributionView,
    overview: Overview,
    currency: str,
    raw_rows: list[RawRow],
    *,
    with_all_rows: bool = False,
) -> OverviewTable:
    raw_rows = _sort(view, raw_rows)
    total = sum((raw_row.sums for raw_row in raw_rows), Attributed())
    is_truncated = len(raw_rows) > ROWS_SHOWN and not with_all_rows and view.value("rows") != "all"
    rows = [_row(formats, it, currency, overview) for it in (raw_rows[:ROWS_SHOWN] if is_truncated else raw_rows)]
    values = [value for row in rows for value in row.lift.values]
    axis = whisker_axis(values) if values else None
    foot = f"Each sale counts for one text only. Attributed sales in total: {formats.money(total.net_cents, currency)}."
    if total.unmatched_cents:
        unmatched = formats.money(total.unmatched_cents, currency)
        foot += f" Returns of {unmatched} match no purchase; they are not subtracted."
    return OverviewTable(
        currency,
        GROUPS[view.value("by")],
        view.value("sort") or ("month" if view.value("by") == "month" else "net"),
        [row._replace(mark=row.lift.mark(axis)) for row in rows],
        [] if axis is None else axis.labels(),
        foot,
        is_truncated,
    )


def _row(formats: Format, raw_row: RawRow, currency: str, overview: Overview) -> Row:
    group = raw_row.group
    notes = [group.label] if group.label else []
    notes += [f"{formats.number(group.texts)} sent"] if group.texts else []
    notes += [f"{formats.number(group.held_out)} held out"] if group.held_out else []
    return Row(
        group,
        raw_row.sums,
        formats.money_rounded(raw_row.sums.net_cents, currency),
        describe_cost(formats, group.sent, overview.prices),
        " · ".join(notes),
        view_verdict(formats, raw_row.verdict, currency),
    )


def describe_cost(formats: Format, sent: Sequence[SentTexts], prices: Mapping[str, Price]) -> str:
    """The cost of sent texts: one amount for each currency; a dash where no price is known."""
    return formats.amounts(estimate(parts_by_country(sent), prices).amounts) or NOTHING


def _headline(
    visit: Visit, view: AttributionView, overview: Overview, currency: str, raw_rows: Sequence[RawRow]
) -> Headline:
    combined = combine_groups([raw_row.group for raw_row in raw_rows])
    number = sum(raw_row.verdict.estimate is not None for raw_row in raw_rows)
    noun = ("month", "months") if view.value("by") == "month" else ("campaign or journey", "campaigns and journeys")
    verdict = judge(combined.lifts, currency)
    scope = f"{currency}, {visit.format.count(number, *noun)} with a result" if number else f"{currency}, no result"
    if verdict.estimate is not None and not number:
        scope = f"{currency}, months together"
    return write_headline(
        visit.format,
        currency,
        view_verdict(visit.format, verdict, currency),
        scope=scope,
        attributed_cents=sum(raw_row.sums.net_cents for raw_row in raw_rows),
        measured_cents=combined.measured_cents(currency, verdict.measured),
        cost=describe_cost(visit.format, combined.sent, overview.prices),
        tickets_url=tickets_url(visit, view.period, currency=currency),
        url=view.url(currency=currency),
        covers_many=True,
        leaves_out=overview.leaves_out,
    )


def _csv_row(row: Row, currency: str, overview: Overview) -> list[str]:
    cost = estimate(parts_by_country(row.group.sent), overview.prices)
    extra = row.lift.estimate
    return [
        row.group.kind,
        row.group.key,
        row.group.name,
        currency,
        str(row.sums.net_cents),
        str(row.sums.gross_cents),
        str(row.sums.unmatched_cents),
        str(row.sums.tickets),
        str(row.group.texts),
        " ".join(f"{amount} {name}" for name, amount in cost.amounts.items()),
        *(("", "", "") if extra is None else (str(round(cents)) for cents in in_cents(extra))),
        row.lift.label,
        str(row.group.held_out),
        "true" if row.lift.has_alarm else "false",
    ]
