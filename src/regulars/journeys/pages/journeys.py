"""The list of journeys, the page of a journey with its flow, and the page of its versions."""

from datetime import datetime
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.journeys.difference import count_changes, diff_definitions
from regulars.journeys.drafts import load_draft
from regulars.journeys.labels import find_reference_names
from regulars.journeys.manage import find_unevaluable_journeys, list_journeys
from regulars.journeys.model import JourneyRow, LivePeriod, VersionRow
from regulars.journeys.pages.common import (
    PATH,
    STATES,
    describe_entry,
    find_journey,
    journey_url,
    read_version,
    render_journey,
)
from regulars.journeys.pages.flow import Card, build_cards
from regulars.journeys.program import FILTER, references_of
from regulars.journeys.runs.lists import list_live_periods, list_versions
from regulars.journeys.stats import JourneyStats, count_at_fault, count_parked, load_stats, load_total_stats
from regulars.kit.ids import JOURNEY
from regulars.kit.keyset import PageRows, page_of
from regulars.lists.sources import id_position
from regulars.web.listing import Filter, ListView, make_page, read_view
from regulars.web.render import render
from regulars.web.visit import Visit

JOURNEYS_MAX: Final = 1_000
RUNS_COUNTED_MAX: Final = 1_000
# How many versions the page of a journey links to.
VERSIONS_LINKED: Final = 6
FILTERS: Final = (
    Filter("q", "Search journeys", kind="search", placeholder="Find a journey by name"),
    Filter("state", "State", choices=tuple((key, label) for key, (label, _, _) in STATES.items())),
)


class JourneyLine(NamedTuple):
    """A journey in the list; `parked` is the number of its runs that failed at every attempt."""

    row: JourneyRow
    url: str
    stats: JourneyStats
    parked: int


async def show_journeys(visit: Visit) -> Response:
    view = read_view(visit, "journeys", PATH, filters=FILTERS)
    async with visit.database.reading() as tx:
        journeys = await list_journeys(tx, visit.organization_id, limit=JOURNEYS_MAX)
        page = make_page(view, _apply_filters(view, journeys))
        sums = await load_total_stats(tx, visit.organization_id, [row.id for row in page.rows])
        parked = await count_parked(tx, visit.organization_id, limit=RUNS_COUNTED_MAX)
    lines = [JourneyLine(row, journey_url(visit, row), sums[row.id], parked.get(row.id, 0)) for row in page.rows]
    live = sum(row.state == "live" for row in journeys)
    return render(
        visit, "journeys/list.html", view=view, page=page, lines=lines, live=live, total=len(journeys), states=STATES
    )


def _apply_filters(view: ListView, rows: list[JourneyRow]) -> PageRows[JourneyRow]:
    """A page of the journeys that match the filters. An organization has few journeys, so they are filtered here."""
    searched, state = view.value("q").casefold(), view.value("state")
    return page_of(
        rows,
        view.request,
        id_position,
        fits=lambda row: searched in row.name.casefold() and state in {"", row.state},
    )


async def show_journey(visit: Visit) -> Response:
    """Show the requested version, or else the live version, or else the latest."""
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        row = journey.row
        stats = await load_stats(tx, visit.organization_id, row.id)
        live_periods = await list_live_periods(tx, visit.organization_id, row.id)
        parked = await count_parked(tx, visit.organization_id, limit=RUNS_COUNTED_MAX)
        at_fault = await count_at_fault(tx, visit.organization_id, limit=RUNS_COUNTED_MAX)
        unevaluable = await find_unevaluable_journeys(tx, visit.organization_id, [row])
        draft = await load_draft(tx, visit.organization_id, row.id)
        requested = read_version(visit)
        shown = requested if requested is not None and requested <= row.version else row.live_version or row.version
        if shown != row.version:
            journey = await find_journey(tx, visit, version=shown)
        names = await find_reference_names(tx, visit.organization_id, references_of(journey.definition))
    version_stats = stats.get(shown, JourneyStats())
    cards = build_cards(journey.definition, journey.faults, names=names, stats=version_stats, formats=visit.format)
    return render_journey(
        visit,
        "journeys/show.html",
        row,
        journey=journey,
        canonical=JOURNEY.encode(row.id),
        shown=shown,
        versions=sorted({*stats, row.version, shown}, reverse=True)[:VERSIONS_LINKED],
        stats=version_stats,
        entered=sum(each.entered for each in stats.values()),
        active_runs=sum(each.active_runs for each in stats.values()),
        cards=cards,
        chosen=_find_card(cards, visit.query.get("step", "")),
        live_since=_live_since(live_periods, row.live_version),
        parked=parked.get(row.id, 0),
        at_fault=at_fault.get(row.id, 0),
        entry_fault=unevaluable.get(row.id, {}).get(FILTER),
        has_branch_fault=bool(unevaluable.get(row.id, {}).keys() - {FILTER}),
        has_draft=draft.has_changes,
        **describe_entry(journey.definition, names, journey.faults),
    )


def _find_card(cards: list[Card], place: str) -> Card | None:
    for card in cards:
        if card.place == place:
            return card
        for path in card.paths:
            inner_card = _find_card(path.steps, place)
            if inner_card is not None:
                return inner_card
    return None


def _live_since(periods: list[LivePeriod], version: int | None) -> datetime | None:
    return next((period.since for period in periods if period.until is None and period.version == version), None)


class VersionLine(NamedTuple):
    """A version in the list; `spans` are the periods in which it was live."""

    row: VersionRow
    spans: list[LivePeriod]
    stats: JourneyStats


async def show_versions(visit: Visit) -> Response:
    """Show the versions, and the difference between the requested version and an earlier version or the draft."""
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        row = journey.row
        version_rows = await list_versions(tx, visit.organization_id, row.id)
        live_periods = await list_live_periods(tx, visit.organization_id, row.id)
        stats = await load_stats(tx, visit.organization_id, row.id)
        draft = await load_draft(tx, visit.organization_id, row.id)
        newer = min(read_version(visit) or row.version, row.version)
        older = min(read_version(visit, "since") or max(newer - 1, 1), newer)
        after = await find_journey(tx, visit, version=newer)
        before = await find_journey(tx, visit, version=older)
    of_draft = visit.query.get("draft") == "1" and draft.has_changes
    if of_draft:
        lines = diff_definitions(journey.definition, draft.definition)
    else:
        lines = diff_definitions(before.definition, after.definition)
    return render_journey(
        visit,
        "journeys/versions.html",
        row,
        versions=[
            VersionLine(
                version,
                [period for period in live_periods if period.version == version.version],
                stats.get(version.version, JourneyStats()),
            )
            for version in version_rows
        ],
        draft=draft,
        of_draft=of_draft,
        newer=newer,
        older=older,
        lines=lines,
        changes=count_changes(lines),
        entered=sum(each.entered for each in stats.values()),
    )
