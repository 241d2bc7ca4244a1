"""Helpers of all campaign pages: find the campaign of the URL, make URLs and labels."""

from typing import Any, Final
from uuid import UUID

import msgspec
from starlette.responses import Response

from regulars.campaigns.confirmed_numbers import (
    RECIPIENTS_MAX,
    Cost,
    Question,
    RecipientsAndCost,
    find_cost_fault,
    read_cost,
)
from regulars.campaigns.manage import PATH, Campaign, load_campaign
from regulars.campaigns.model import CampaignRow
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN
from regulars.web.errors import Conflict
from regulars.web.form import FormState
from regulars.web.format import Format
from regulars.web.render import render
from regulars.web.visit import Visit

ARCHIVED: Final = "archived"
# The names of the variants of a text.
VARIANT_LETTERS: Final = "ABCD"
# Label, kind of badge, icon.
STATES: Final = {
    "draft": ("Draft", "none", "none"),
    "scheduled": ("Scheduled", "info", "calendar"),
    "preparing": ("Preparing", "info", "clock"),
    "sending": ("Sending", "live", "live"),
    "paused": ("Paused", "warn", "pause"),
    "ended": ("Sent", "yes", "yes"),
    "cancelled": ("Cancelled", "blocked", "blocked"),
}


def read_campaign_id(visit: Visit) -> UUID:
    """The id of the campaign in the URL path."""
    return visit.read_id(CAMPAIGN, "There is no such campaign in this organization.")


async def find_campaign(tx: Tx, visit: Visit) -> Campaign:
    """The campaign whose id is in the URL."""
    return await load_campaign(tx, visit.organization_id, read_campaign_id(visit))


def read_confirmed(form: FormState) -> tuple[int, Cost | None]:
    """The recipients and the cost that the page showed to the user, from its hidden fields."""
    recipients = form.integer("recipients", minimum=0, maximum=RECIPIENTS_MAX)
    cost: Cost | None = None
    try:
        cost = read_cost(form.value("cost") or None)
        fault = find_cost_fault(cost)
    except msgspec.DecodeError:
        fault = "The cost could not be read."
    if fault is not None:
        form.refuse("cost", fault)
    if form.is_refused:
        raise Conflict("We could not read the figures that you confirmed. Open the confirmation again.")
    return recipients, cost


def describe_question(formats: Format, question: Question) -> str:
    """The numbers of a question, such as `19 recipients for about €0.95`."""
    cost = formats.amounts(question.cost)
    return formats.count(question.recipients, "recipient") + (f" for about {cost}" if cost else "")


def describe_most(formats: Format, most: RecipientsAndCost) -> str:
    """The most that is sent or approved, such as `up to 249 recipients, €24.40`."""
    if most.cost is None:
        return f"up to {formats.count(most.recipients, 'recipient')} at an unknown cost"
    cost = formats.amounts(most.cost)
    return f"up to {formats.count(most.recipients, 'recipient')}" + (f", {cost}" if cost else "")


def campaign_url(visit: Visit, row: CampaignRow, *segments: str) -> str:
    return visit.url(PATH, CAMPAIGN.encode(row.id), *segments)


def render_campaign(visit: Visit, template: str, row: CampaignRow, *, status: int = 200, **values: Any) -> Response:
    """Render a page of one campaign."""
    return render(visit, template, status=status, **values_of_campaign(visit, row), **values)


def values_of_campaign(visit: Visit, row: CampaignRow) -> dict[str, Any]:
    """The values that the head of every page of a campaign needs."""
    return {"row": row, "states": STATES, "here": campaign_url(visit, row)}
