"""The page of a journey: its flow with figures, and the step that is looked at."""

from datetime import datetime

from starlette.responses import Response

from regulars.journeys.browse.read import list_spans
from regulars.journeys.drafts.change import load_draft
from regulars.journeys.faults import find_unjudgeable_journeys
from regulars.journeys.figures.read import JourneyFigures, count_at_fault, count_parked, read_figures
from regulars.journeys.names import find_segment_names, name_segments
from regulars.journeys.needs import FILTER, needs_of
from regulars.journeys.pages.flow import Card, draw, faults_at
from regulars.journeys.pages.listing import PARKED_COUNTED_MAX
from regulars.journeys.pages.parts import STATES, find_journey, journey_url, read_version
from regulars.journeys.runs.model import SpanRow
from regulars.journeys.words import TRIGGERS, tell_condition, tell_entry, tell_exits
from regulars.kit.ids import JOURNEY
from regulars.web.render import render
from regulars.web.visit import Visit


async def show_journey(visit: Visit) -> Response:
    """The version shown is the one asked for, else the live one, else the last."""
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        row = journey.row
        figures = await read_figures(tx, visit.organization_id, row.id)
        spans = await list_spans(tx, visit.organization_id, row.id)
        parked = await count_parked(tx, visit.organization_id, most=PARKED_COUNTED_MAX)
        at_fault = await count_at_fault(tx, visit.organization_id, most=PARKED_COUNTED_MAX)
        unjudgeable = await find_unjudgeable_journeys(tx, visit.organization_id, [row])
        draft = await load_draft(tx, visit.organization_id, row.id)
        asked = read_version(visit)
        shown = asked if asked is not None and asked <= row.version else row.live_version or row.version
        if shown != row.version:
            journey = await find_journey(tx, visit, version=shown)
        segments = await find_segment_names(tx, visit.organization_id, needs_of(journey.definition).segments)
    of_version = figures.get(shown, JourneyFigures())
    cards = draw(journey.definition, journey.faults, segments=segments, figures=of_version, formats=visit.format)
    asked_first = journey.definition.filter
    return render(
        visit,
        "journeys/show.html",
        journey=journey,
        row=row,
        states=STATES,
        here=journey_url(visit, row),
        canonical=JOURNEY.encode(row.id),
        shown=shown,
        versions=sorted({*figures, row.version, shown}, reverse=True)[:6],
        figures=of_version,
        entered=sum(one.entered for one in figures.values()),
        inside=sum(one.inside for one in figures.values()),
        cards=cards,
        chosen=_chosen(cards, visit.query.get("step", "")),
        live_since=_live_since(spans, row.live_version),
        parked=parked.get(row.id, 0),
        at_fault=at_fault.get(row.id, 0),
        entry_fault=unjudgeable.get(row.id, {}).get(FILTER),
        has_branch_fault=bool(unjudgeable.get(row.id, {}).keys() - {FILTER}),
        has_draft=draft.is_new,
        trigger=TRIGGERS[journey.definition.trigger],
        entry=tell_entry(journey.definition),
        exits=tell_exits(journey.definition),
        condition=None if asked_first is None else name_segments(tell_condition(asked_first), segments),
        filter_faults=faults_at(journey.faults, "filter"),
        general_faults=faults_at(journey.faults, "steps", "reentry"),
    )


def _chosen(cards: list[Card], place: str) -> Card | None:
    for card in cards:
        if card.place == place:
            return card
        for way in card.ways:
            found = _chosen(way.steps, place)
            if found is not None:
                return found
    return None


def _live_since(spans: list[SpanRow], version: int | None) -> datetime | None:
    return next((span.since for span in spans if span.until is None and span.version == version), None)
