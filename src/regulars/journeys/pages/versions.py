"""The versions of a journey, and what is different between two of them."""

from typing import NamedTuple

from starlette.responses import Response

from regulars.journeys.browse.read import list_spans, list_versions
from regulars.journeys.difference import count_changes, tell_difference
from regulars.journeys.drafts.change import load_draft
from regulars.journeys.figures.read import JourneyFigures, read_figures
from regulars.journeys.pages.parts import STATES, find_journey, journey_url, read_version
from regulars.journeys.runs.model import SpanRow, VersionRow
from regulars.web.render import render
from regulars.web.visit import Visit


class VersionLine(NamedTuple):
    row: VersionRow
    spans: list[SpanRow]
    figures: JourneyFigures


async def show_versions(visit: Visit) -> Response:
    """The list, and the difference of the one asked for from the one before it, or from another."""
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        row = journey.row
        found = await list_versions(tx, visit.organization_id, row.id)
        spans = await list_spans(tx, visit.organization_id, row.id)
        figures = await read_figures(tx, visit.organization_id, row.id)
        draft = await load_draft(tx, visit.organization_id, row.id)
        newer = min(read_version(visit) or row.version, row.version)
        older = min(read_version(visit, "since") or max(newer - 1, 1), newer)
        after = await find_journey(tx, visit, version=newer)
        before = await find_journey(tx, visit, version=older)
    of_draft = visit.query.get("draft") == "1" and draft.is_new
    if of_draft:
        lines = tell_difference(journey.definition, draft.definition)
    else:
        lines = tell_difference(before.definition, after.definition)
    return render(
        visit,
        "journeys/versions.html",
        row=row,
        states=STATES,
        here=journey_url(visit, row),
        versions=[
            VersionLine(
                one,
                [span for span in spans if span.version == one.version],
                figures.get(one.version, JourneyFigures()),
            )
            for one in found
        ],
        draft=draft,
        of_draft=of_draft,
        newer=newer,
        older=older,
        lines=lines,
        changes=count_changes(lines),
        entered=sum(one.entered for one in figures.values()),
    )
