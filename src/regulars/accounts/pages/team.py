"""The pages about the team of an organization: members and their roles, invitations, links for new passwords."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from starlette.responses import Response

from regulars.accounts import team
from regulars.accounts.audit.log import actor_of
from regulars.accounts.audit.sentences import USER
from regulars.accounts.errors import AccountRefusal
from regulars.accounts.invitation_form import invite_by_form
from regulars.accounts.links import LINK_PATH, list_links
from regulars.accounts.model import Member
from regulars.accounts.queries import list_members
from regulars.kit import ids
from regulars.web.access import Action, Role
from regulars.web.form import FormState
from regulars.web.render import redirect, render, render_form
from regulars.web.route import Form, Harm, Page
from regulars.web.visit import Visit

TEAM_PATH: Final = "/settings/team"
LINK_ID: Final = ids.IdKind("link", "inv_")
_ROLE_TEXTS: Final = {
    Role.OWNER: "Everything; can add and remove owners",
    Role.ADMIN: "Everything; cannot add or remove owners",
    Role.MARKETER: "Customers, segments, journeys, campaigns and texts; cannot erase customers or manage keys and team",
    Role.ANALYST: "Sees sales, figures and segments without personal data; cannot change anything",
    Role.DEVELOPER: "Send-only API keys, request log and webhooks, which an admin approves; sees no personal data",
}
ROLE_DESCRIPTIONS: Final = [(role.value, role.value.capitalize(), text) for role, text in _ROLE_TEXTS.items()]


async def invite(visit: Visit) -> Response:
    form = FormState(visit.form, again=_render_invite)
    role = form.choice("role", {role.value for role in Role})
    url = await invite_by_form(visit, form, role)
    return redirect(visit, visit.url(TEAM_PATH), show_once=url)


async def password_link(visit: Visit) -> Response:
    try:
        async with visit.database.transaction() as tx:
            token = await team.password_link(
                tx, visit.organization_id, visit.read_id(USER), by=actor_of(visit), by_role=visit.organization.role
            )
    except AccountRefusal as refusal:
        return await _render_member(visit, refusal=str(refusal))
    return redirect(visit, visit.url(TEAM_PATH), show_once=f"{visit.server_url}{LINK_PATH}/{token}")


async def show_team(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        members = await list_members(tx, visit.organization_id)
        links = await list_links(tx, visit.organization_id)
    return render(
        visit,
        "accounts/team.html",
        members=[(USER.encode(member.user_id), member) for member in members],
        links=[(LINK_ID.encode(link.id), link) for link in links],
    )


async def show_invite(visit: Visit) -> Response:
    return await _render_invite(visit, FormState({"role": Role.ANALYST.value}))


async def _render_invite(visit: Visit, form: FormState) -> Response:
    return render_form(visit, "accounts/invite.html", form, roles=ROLE_DESCRIPTIONS)


async def withdraw(visit: Visit) -> Response:
    identifier = visit.read_id(LINK_ID)
    async with visit.database.transaction() as tx:
        await team.withdraw_link(tx, visit.organization_id, identifier, by=actor_of(visit))
    return redirect(visit, visit.url(TEAM_PATH), done="The link is revoked.")


async def change_role(visit: Visit) -> Response:
    role = visit.form.get("role", "")
    if role not in set(Role):
        return await _render_member(visit, refusal="Choose one of the roles.")
    change = partial(team.change_role, role=Role(role))
    return await _change(visit, change=change, done=f"is now {role}.")


async def confirm_remove(visit: Visit) -> Response:
    member = await _find_member(visit)
    return render(visit, "accounts/remove_member.html", member=member, reference=visit.references[0], form=FormState())


async def _change(visit: Visit, *, change: Callable[..., Awaitable[Member]], done: str) -> Response:
    try:
        async with visit.database.transaction() as tx:
            member = await change(
                tx, visit.organization_id, visit.read_id(USER), by=actor_of(visit), by_role=visit.organization.role
            )
    except AccountRefusal as refusal:
        return await _render_member(visit, refusal=str(refusal))
    return redirect(visit, visit.url(TEAM_PATH), done=f"{member.name} {done}")


async def _render_member(visit: Visit, *, refusal: str = "") -> Response:
    member = await _find_member(visit)
    return render(
        visit,
        "accounts/member.html",
        status=400 if refusal else 200,
        member=member,
        reference=visit.references[0],
        form=FormState({"role": member.role.value}),
        roles=ROLE_DESCRIPTIONS,
        refusal=refusal,
    )


async def _find_member(visit: Visit) -> Member:
    async with visit.database.reading() as tx:
        return await team.find_member(tx, visit.organization_id, visit.read_id(USER))


_NEEDS: Final = Action.MANAGE_TEAM
_MEMBER_PATH: Final = TEAM_PATH + "/{member}"
_sign_out: Final = partial(_change, change=team.sign_out_member, done="is signed out everywhere.")
_remove: Final = partial(_change, change=team.remove_member, done="is no longer a member.")
PAGES: Final = (
    Page(path=TEAM_PATH, needs=_NEEDS, handle=show_team),
    Page(path=f"{TEAM_PATH}/invite", needs=_NEEDS, handle=show_invite),
    Form(path=f"{TEAM_PATH}/invite", needs=_NEEDS, handle=invite, harm=Harm.GRANTS),
    Form(path=TEAM_PATH + "/links/{link}/withdraw", needs=_NEEDS, handle=withdraw, harm=Harm.STOPS),
    Page(path=_MEMBER_PATH, needs=_NEEDS, handle=_render_member),
    Form(path=f"{_MEMBER_PATH}/role", needs=_NEEDS, handle=change_role, harm=Harm.GRANTS),
    Form(path=f"{_MEMBER_PATH}/password-link", needs=_NEEDS, handle=password_link, harm=Harm.GRANTS),
    Form(path=f"{_MEMBER_PATH}/sign-out", needs=_NEEDS, handle=_sign_out, harm=Harm.STOPS),
    Page(path=f"{_MEMBER_PATH}/remove", needs=_NEEDS, handle=confirm_remove),
    Form(path=f"{_MEMBER_PATH}/remove", needs=_NEEDS, handle=_remove, harm=Harm.STOPS),
)
