"""The list of journeys, with what each brought in and sent."""

from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.journeys.figures.read import JourneyFigures, count_parked, read_sums
from regulars.journeys.manage import list_journeys
from regulars.journeys.model import JourneyRow
from regulars.journeys.pages.parts import PATH, STATES, journey_url
from regulars.kit.keyset import PageRows, page_of
from regulars.web.listing import Filter, ListView, cut, id_position, read_view
from regulars.web.render import render
from regulars.web.visit import Visit

JOURNEYS_MAX: Final = 1_000
PARKED_COUNTED_MAX: Final = 1_000
FILTERS: Final = (
    Filter("q", "Search journeys", kind="search", placeholder="Name"),
    Filter("state", "State", choices=tuple((key, words) for key, (words, _, _) in STATES.items())),
)


class Line(NamedTuple):
    row: JourneyRow
    url: str
    figures: JourneyFigures
    parked: int


async def show_journeys(visit: Visit) -> Response:
    view = read_view(visit, "journeys", PATH, filters=FILTERS)
    async with visit.database.reading() as tx:
        every = await list_journeys(tx, visit.organization_id, limit=JOURNEYS_MAX)
        page = cut(view, _of_view(view, every))
        sums = await read_sums(tx, visit.organization_id, [row.id for row in page.rows])
        parked = await count_parked(tx, visit.organization_id, most=PARKED_COUNTED_MAX)
    lines = [Line(row, journey_url(visit, row), sums[row.id], parked.get(row.id, 0)) for row in page.rows]
    live = sum(row.state == "live" for row in every)
    return render(
        visit, "journeys/list.html", view=view, page=page, lines=lines, live=live, total=len(every), states=STATES
    )


def _of_view(view: ListView, rows: list[JourneyRow]) -> PageRows[JourneyRow]:
    """An organization has few journeys: all are at hand, and the view takes its stretch."""
    wanted, state = view.value("q").casefold(), view.value("state")
    return page_of(
        rows,
        view.request,
        id_position,
        fits=lambda row: wanted in row.name.casefold() and state in {"", row.state},
    )
