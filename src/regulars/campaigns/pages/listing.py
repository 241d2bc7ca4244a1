"""The list of campaigns, and the form that creates a campaign."""

from datetime import datetime
from typing import Final, NamedTuple

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.campaigns.definition import Definition
from regulars.campaigns.manage import PATH, create_campaign, list_campaigns
from regulars.campaigns.model import CampaignRow
from regulars.campaigns.pages.common import ARCHIVED, STATES, campaign_url
from regulars.campaigns.totals import count_sent
from regulars.kit.ids import CAMPAIGN
from regulars.kit.keyset import PageRows, page_of
from regulars.lists.sources import id_position
from regulars.segments.saved import manage as segments
from regulars.web.form import FormState
from regulars.web.listing import Filter, ListView, make_page, read_view
from regulars.web.render import redirect, render, render_form
from regulars.web.visit import Visit

CAMPAIGNS_MAX: Final = 1_000
NAME_CHARACTERS_MAX: Final = 120
FILTERS: Final = (
    Filter("q", "Search campaigns", kind="search", placeholder="Find a campaign by name"),
    Filter(
        "state", "State", choices=(*((key, label) for key, (label, _, _) in STATES.items()), (ARCHIVED, "Archived"))
    ),
)


class CampaignLine(NamedTuple):
    row: CampaignRow
    url: str
    # The number of recipients whose text left.
    sent: int
    # When the campaign starts or started; for a draft, when it was last changed.
    at: datetime
    by: str | None


async def show_campaigns(visit: Visit) -> Response:
    view = read_view(visit, "campaigns", PATH, filters=FILTERS)
    async with visit.database.reading() as tx:
        campaigns = await list_campaigns(tx, visit.organization_id, limit=CAMPAIGNS_MAX)
        page = make_page(view, _apply_filters(view, campaigns))
        sent = await count_sent(tx, visit.organization_id, [row.id for row in page.rows])
    lines = [
        CampaignLine(
            row,
            campaign_url(visit, row),
            sent.get(row.id, 0),
            row.frozen_at or row.starts_at or row.updated_at,
            row.confirmed_by or row.created_by,
        )
        for row in page.rows
    ]
    unarchived = [row for row in campaigns if not row.is_archived]
    return render(
        visit,
        "campaigns/list.html",
        view=view,
        page=page,
        lines=lines,
        total=len(unarchived),
        archived=len(campaigns) - len(unarchived),
        sending=sum(row.state == "sending" for row in unarchived),
        states=STATES,
    )


def _apply_filters(view: ListView, rows: list[CampaignRow]) -> PageRows[CampaignRow]:
    """A page of the campaigns that match the filters. An organization has few campaigns, so they are filtered here."""
    searched, state = view.value("q").casefold(), view.value("state")
    return page_of(
        rows,
        view.request,
        id_position,
        fits=lambda row: (
            searched in row.name.casefold()
            and row.is_archived == (state == ARCHIVED)
            and state in {"", ARCHIVED, row.state}
        ),
    )


async def new(visit: Visit, form: FormState | None = None) -> Response:
    """Show the form of a new campaign; a link on a segment's page fills in the segment."""
    async with visit.database.reading() as tx:
        choices = await segments.list_choices(tx, visit.organization_id)
    segment = visit.query.get("segment", "")
    form = form or FormState({"segment": segment, "name": dict(choices).get(segment, "")})
    return render_form(visit, "campaigns/new.html", form, segments=choices)


async def create(visit: Visit) -> Response:
    form = FormState(visit.form, again=new)
    name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
    async with visit.database.transaction() as tx:
        choices = await segments.list_choices(tx, visit.organization_id)
        segment = form.choice("segment", dict(choices))
        form.check()
        definition = Definition(name=name, include=(segment,), variants=())
        created = await create_campaign(tx, visit.organization_id, definition, created_by=visit.user.email)
        await record_act(tx, visit, "campaign.create", CAMPAIGN.encode(created.row.id), after={"name": name})
    done = "Draft created. Nothing is sent until you confirm it."
    return redirect(visit, campaign_url(visit, created.row, "edit"), done=done)
