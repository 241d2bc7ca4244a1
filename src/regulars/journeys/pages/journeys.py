"""The list of journeys, the page of one with its flow, and its versions."""

from datetime import datetime
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.journeys import labels
from regulars.journeys.difference import count_changes, diff_definitions
from regulars.journeys.drafts import load_draft
from regulars.journeys.manage import find_unjudgeable_journeys, list_journeys
from regulars.journeys.model import JourneyRow, SpanRow, VersionRow
from regulars.journeys.pages.common import PATH, STATES, find_journey, journey_url, read_version
from regulars.journeys.pages.flow import Card, build_cards, faults_at
from regulars.journeys.program import FILTER, references_of
from regulars.journeys.runs.lists import list_spans, list_versions
from regulars.journeys.stats import JourneyStats, count_at_fault, count_parked, load_stats, load_total_stats
from regulars.kit.ids import JOURNEY
from regulars.kit.keyset import PageRows, page_of
from regulars.web.listing import Filter, ListView, id_position, make_page, read_view
from regulars.web.render import render
from regulars.web.visit import Visit

JOURNEYS_MAX: Final = 1_000
PARKED_COUNTED_MAX: Final = 1_000
FILTERS: Final = (
    Filter("q", "Search journeys", kind="search", placeholder="Name"),
    Filter("state", "State", choices=tuple((key, label) for key, (label, _, _) in STATES.items())),
)


class JourneyLine(NamedTuple):
    row: JourneyRow
    url: str
    stats: JourneyStats
    parked: int


async def show_journeys(visit: Visit) -> Response:
    view = read_view(visit, "journeys", PATH, filters=FILTERS)
    async with visit.database.reading() as tx:
        journeys = await list_journeys(tx, visit.organization_id, limit=JOURNEYS_MAX)
        page = make_page(view, _of_view(view, journeys))
        sums = await load_total_stats(tx, visit.organization_id, [row.id for row in page.rows])
        parked = await count_parked(tx, visit.organization_id, most=PARKED_COUNTED_MAX)
    lines = [JourneyLine(row, journey_url(visit, row), sums[row.id], parked.get(row.id, 0)) for row in page.rows]
    live = sum(row.state == "live" for row in journeys)
    return render(
        visit, "journeys/list.html", view=view, page=page, lines=lines, live=live, total=len(journeys), states=STATES
    )


def _of_view(view: ListView, rows: list[JourneyRow]) -> PageRows[JourneyRow]:
    """A page of the journeys that match the filters. An organization has few journeys, so all of them are loaded."""
    wanted, state = view.value("q").casefold(), view.value("state")
    return page_of(
        rows,
        view.request,
        id_position,
        fits=lambda row: wanted in row.name.casefold() and state in {"", row.state},
    )


async def show_journey(visit: Visit) -> Response:
    """Show the requested version, or else the live one, or else the latest."""
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        row = journey.row
        stats = await load_stats(tx, visit.organization_id, row.id)
        spans = await list_spans(tx, visit.organization_id, row.id)
        parked = await count_parked(tx, visit.organization_id, most=PARKED_COUNTED_MAX)
        at_fault = await count_at_fault(tx, visit.organization_id, most=PARKED_COUNTED_MAX)
        unjudgeable = await find_unjudgeable_journeys(tx, visit.organization_id, [row])
        draft = await load_draft(tx, visit.organization_id, row.id)
        requested = read_version(visit)
        shown = requested if requested is not None and requested <= row.version else row.live_version or row.version
        if shown != row.version:
            journey = await find_journey(tx, visit, version=shown)
        names = await labels.find_reference_names(tx, visit.organization_id, references_of(journey.definition))
    of_version = stats.get(shown, JourneyStats())
    cards = build_cards(journey.definition, journey.faults, names=names, stats=of_version, formats=visit.format)
    entry_filter = journey.definition.filter
    return render(
        visit,
        "journeys/show.html",
        journey=journey,
        row=row,
        states=STATES,
        here=journey_url(visit, row),
        canonical=JOURNEY.encode(row.id),
        shown=shown,
        versions=sorted({*stats, row.version, shown}, reverse=True)[:6],
        stats=of_version,
        entered=sum(each.entered for each in stats.values()),
        active_runs=sum(each.active_runs for each in stats.values()),
        cards=cards,
        chosen=_chosen(cards, visit.query.get("step", "")),
        live_since=_live_since(spans, row.live_version),
        parked=parked.get(row.id, 0),
        at_fault=at_fault.get(row.id, 0),
        entry_fault=unjudgeable.get(row.id, {}).get(FILTER),
        has_branch_fault=bool(unjudgeable.get(row.id, {}).keys() - {FILTER}),
        has_draft=draft.is_new,
        trigger=labels.TRIGGERS[journey.definition.trigger],
        entry=labels.describe_reentry(journey.definition),
        exits=labels.describe_exits(journey.definition),
        condition=None
        if entry_filter is None
        else labels.name_references(labels.describe_condition(entry_filter), names),
        filter_faults=faults_at(journey.faults, "filter"),
        general_faults=faults_at(journey.faults, "steps", "reentry"),
    )


def _chosen(cards: list[Card], place: str) -> Card | None:
    for card in cards:
        if card.place == place:
            return card
        for path in card.paths:
            found = _chosen(path.steps, place)
            if found is not None:
                return found
    return None


def _live_since(spans: list[SpanRow], version: int | None) -> datetime | None:
    return next((span.since for span in spans if span.until is None and span.version == version), None)


class VersionLine(NamedTuple):
    row: VersionRow
    spans: list[SpanRow]
    stats: JourneyStats


async def show_versions(visit: Visit) -> Response:
    """The list, and the difference between the requested version and the one before it, or another."""
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        row = journey.row
        version_rows = await list_versions(tx, visit.organization_id, row.id)
        spans = await list_spans(tx, visit.organization_id, row.id)
        stats = await load_stats(tx, visit.organization_id, row.id)
        draft = await load_draft(tx, visit.organization_id, row.id)
        newer = min(read_version(visit) or row.version, row.version)
        older = min(read_version(visit, "since") or max(newer - 1, 1), newer)
        after = await find_journey(tx, visit, version=newer)
        before = await find_journey(tx, visit, version=older)
    of_draft = visit.query.get("draft") == "1" and draft.is_new
    if of_draft:
        lines = diff_definitions(journey.definition, draft.definition)
    else:
        lines = diff_definitions(before.definition, after.definition)
    return render(
        visit,
        "journeys/versions.html",
        row=row,
        states=STATES,
        here=journey_url(visit, row),
        versions=[
            VersionLine(
                version,
                [span for span in spans if span.version == version.version],
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
