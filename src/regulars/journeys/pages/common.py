"""Helpers of all journey pages: find the journey of the URL, and make URLs."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from starlette.responses import Response

from regulars.conditions.check import Fault
from regulars.journeys import labels
from regulars.journeys.definition import Definition
from regulars.journeys.manage import Journey, load_journey
from regulars.journeys.model import JourneyRow
from regulars.journeys.pages.flow import faults_at
from regulars.kit.db import Tx
from regulars.kit.ids import JOURNEY
from regulars.web.render import render
from regulars.web.visit import Visit

PATH: Final = "/journeys"
# Label, kind of badge, icon.
STATES: Final = {
    "live": ("Live", "live", "live"),
    "paused": ("Paused", "warn", "pause"),
    "draft": ("Draft", "none", "none"),
    "archived": ("Ended", "blocked", "blocked"),
}


def read_journey_id(visit: Visit) -> UUID:
    """The id of the journey in the URL path."""
    return visit.read_id(JOURNEY, "There is no such journey in this organization.")


async def find_journey(tx: Tx, visit: Visit, *, version: int | None = None) -> Journey:
    """The journey whose id is in the URL."""
    return await load_journey(tx, visit.organization_id, read_journey_id(visit), version=version)


def journey_url(visit: Visit, row: JourneyRow, *segments: str) -> str:
    return visit.url(PATH, JOURNEY.encode(row.id), *segments)


def render_journey(visit: Visit, template: str, row: JourneyRow, *, status: int = 200, **values: Any) -> Response:
    """Render a page of one journey, with the values that the head of every such page needs."""
    return render(visit, template, status=status, row=row, states=STATES, here=journey_url(visit, row), **values)


def describe_entry(definition: Definition, names: Mapping[str, str], faults: list[Fault]) -> dict[str, Any]:
    """The template values of the entry into a journey: its trigger and conditions, and faults that no step has.
    `names` has the names of the segments and campaigns that conditions refer to, by id."""
    condition = None
    if definition.filter is not None:
        condition = labels.name_references(labels.describe_condition(definition.filter), names)
    return {
        "trigger": labels.TRIGGERS[definition.trigger],
        "entry": labels.describe_reentry(definition),
        "exits": labels.describe_exits(definition),
        "condition": condition,
        "filter_faults": faults_at(faults, "filter"),
        "general_faults": faults_at(faults, "steps", "reentry"),
    }


def read_version(visit: Visit, name: str = "version") -> int | None:
    """The version number in the URL query; None if it is missing or not a number."""
    text = visit.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 and int(text) else None  # noqa: PLR2004  # a million versions
