"""The page "First steps" with the ways to begin: a developer, who is invited here, or the demo."""

from typing import Final

from starlette.responses import Response

from regulars.accounts import team
from regulars.accounts.audit.log import record_act
from regulars.accounts.invitation_form import invite_by_form
from regulars.accounts.links import list_links
from regulars.demo.requests import TICKETS
from regulars.first_run.pages.demo import show_demo, start_demo
from regulars.first_run.pages.developer import create_first_key, show_developer_page
from regulars.first_run.state import STEPS, read_state
from regulars.organizations.manage import dismiss_first_steps
from regulars.web.access import Action, Role
from regulars.web.form import FormState
from regulars.web.navigation import DEMO, DEVELOPER_STEPS, FIRST_STEPS
from regulars.web.render import redirect, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit


async def _show_first_steps(visit: Visit) -> Response:
    if visit.organization.role is Role.DEVELOPER:
        return redirect(visit, visit.url(DEVELOPER_STEPS))
    return await _render_ways(visit, FormState())


async def _render_ways(visit: Visit, form: FormState) -> Response:
    async with visit.database.snapshot() as tx:
        state = await read_state(tx, visit.organization_id)
        may_invite = visit.may(Action.MANAGE_TEAM)
        links = await list_links(tx, visit.organization_id) if may_invite else []
        developers = await team.list_members_of_role(tx, visit.organization_id, Role.DEVELOPER) if may_invite else []
    return render_form(
        visit,
        "first_run/first_steps.html",
        form,
        state=state,
        steps=STEPS,
        invitations=[link for link in links if link.role is Role.DEVELOPER],
        developers=developers,
        demo_tickets=TICKETS,
    )


async def _invite_developer(visit: Visit) -> Response:
    form = FormState(visit.form, again=_render_ways)
    url = await invite_by_form(visit, form, Role.DEVELOPER)
    return redirect(visit, visit.url(FIRST_STEPS), show_once=url)


async def _dismiss(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        await dismiss_first_steps(tx.connection, visit.organization_id)
        await record_act(tx, visit, "first_steps.dismiss", visit.organization.name)
    return redirect(visit, visit.url("/"), done="First steps are no longer in the navigation.")


PAGES: Final = (
    Page(path=FIRST_STEPS, needs=Action.READ, handle=_show_first_steps),
    Page(path=DEVELOPER_STEPS, needs=Action.READ, handle=show_developer_page),
    Form(path=f"{FIRST_STEPS}/invite", needs=Action.MANAGE_TEAM, handle=_invite_developer, harm=Harm.GRANTS),
    Form(path=f"{FIRST_STEPS}/key", needs=Action.MANAGE_INGEST_KEYS, handle=create_first_key, harm=Harm.CONNECTS),
    Form(path=f"{FIRST_STEPS}/demo", needs=Action.MANAGE_ORGANIZATION, handle=start_demo, harm=Harm.CHANGES),
    Form(path=f"{FIRST_STEPS}/dismiss", needs=Action.MANAGE_ORGANIZATION, handle=_dismiss, harm=Harm.CHANGES),
    Page(path=DEMO, needs=Action.READ, handle=show_demo),
)
