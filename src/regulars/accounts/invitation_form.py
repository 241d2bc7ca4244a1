"""The form that invites a person: its page shows the link once, for the member to pass on."""

from regulars.accounts import team
from regulars.accounts.audit.log import actor_of
from regulars.accounts.errors import AccountRefusal
from regulars.accounts.links import LINK_PATH
from regulars.accounts.model import read_email
from regulars.web.access import Role
from regulars.web.form import FormState
from regulars.web.visit import Visit


def read_form_email(form: FormState) -> str:
    email = read_email(form.value("email"))
    if email is None:
        form.refuse("email", "Write the address as name@example.com.")
    return email or ""


async def invite_by_form(visit: Visit, form: FormState, role: str) -> str:
    """Invite the address in the form; return the URL of the invitation."""
    email = read_form_email(form)
    form.check()
    with form.refusing("email", AccountRefusal):
        async with visit.database.transaction() as tx:
            token = await team.invite(
                tx,
                visit.organization_id,
                email=email,
                role=Role(role),
                by=actor_of(visit),
                by_role=visit.organization.role,
            )
    return f"{visit.server_url}{LINK_PATH}/{token}"
