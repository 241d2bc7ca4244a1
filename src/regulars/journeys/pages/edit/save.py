"""Saving the draft as a version, and throwing it away."""

from starlette.responses import Response

from regulars.accounts.audit.log import actor_of, record
from regulars.journeys.difference import tell_difference
from regulars.journeys.drafts.change import discard_draft, save_draft
from regulars.journeys.pages.edit.builder import find_draft
from regulars.journeys.pages.parts import STATES, find_journey, journey_url, read_journey_id, refusals
from regulars.kit.etag import EtagMismatch, etag_of
from regulars.kit.ids import JOURNEY
from regulars.web.form import FormState
from regulars.web.render import redirect, render
from regulars.web.visit import Visit


async def save(visit: Visit) -> Response:
    """A version; where another was saved meanwhile, both are shown and nothing is lost."""
    etag, by = visit.form.get("was", ""), visit.user.email
    try:
        async with visit.database.transaction() as tx:
            with refusals():
                journey = await save_draft(tx, visit.organization_id, read_journey_id(visit), etag=etag, by=by)
            row = journey.row
            after = {"version": row.version, "name": row.name, "state": row.state}
            subject = JOURNEY.encode(row.id)
            await record(tx, visit.organization_id, actor_of(visit), "journey.save_version", subject, after=after)
    except EtagMismatch:
        return await _show_both(visit)
    if visit.form.get("activate"):
        return redirect(visit, journey_url(visit, row, "activate"), done=f"Version {row.version} is saved.")
    done = f"Version {row.version} is saved" + (
        " and live: whoever enters from now on follows it." if row.state == "live" else "."
    )
    return redirect(visit, f"{journey_url(visit, row)}?version={row.version}", done=done)


async def _show_both(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        journey = await find_journey(tx, visit)
        draft = await find_draft(tx, visit)
    why = f"{draft.changed_by} changed the draft meanwhile; look at it before you save it."
    if draft.based_on != journey.row.version:
        why = f"Version {journey.row.version} was saved meanwhile; the draft began with version {draft.based_on}."
    return render(
        visit,
        "journeys/clash.html",
        status=409,
        why=why,
        row=journey.row,
        states=STATES,
        draft=draft,
        was=etag_of((draft.definition, journey.row.version)),
        lines=tell_difference(journey.definition, draft.definition),
        here=journey_url(visit, journey.row),
    )


async def ask_to_discard(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        draft = await find_draft(tx, visit)
    here = journey_url(visit, draft.row)
    return render(visit, "journeys/discard.html", draft=draft, row=draft.row, form=FormState(), here=here)


async def discard(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        draft = await find_draft(tx, visit)
        if await discard_draft(tx, visit.organization_id, draft.row.id):
            before = {"based_on": draft.based_on, "revision": draft.revision}
            subject = JOURNEY.encode(draft.row.id)
            await record(tx, visit.organization_id, actor_of(visit), "journey.discard_draft", subject, before=before)
    return redirect(visit, journey_url(visit, draft.row), done="The draft is thrown away; the versions stay.")
