"""Signing in and out, and the choice of an organization."""

from collections.abc import Sequence

from starlette.responses import Response

from regulars.accounts import people, sessions
from regulars.accounts.model import EMAIL_CHARACTERS_MAX, read_email
from regulars.accounts.passwords import Passwords
from regulars.accounts.sign_in import check_password
from regulars.web import cookies
from regulars.web.form import FormState
from regulars.web.next_page import safe_next
from regulars.web.render import redirect, refused, render
from regulars.web.route import Door, Form, Page
from regulars.web.visit import Visit

ORGANIZATIONS_PATH = "/organizations"


def pages() -> Sequence[Page]:
    desk = _Desk(Passwords())
    return (
        Page(path="/sign-in", needs=Door.OPEN, handle=desk.show_sign_in),
        Form(path="/sign-in", needs=Door.OPEN, handle=desk.sign_in),
        Form(path="/sign-out", needs=Door.SIGNED_IN, handle=_sign_out),
        Page(path=ORGANIZATIONS_PATH, needs=Door.SIGNED_IN, handle=_organizations),
    )


class _Desk:
    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords

    async def show_sign_in(self, visit: Visit) -> Response:
        next_ = safe_next(visit.query.get("next"), otherwise="")
        if visit.visitor is not None:
            return redirect(visit, next_ or ORGANIZATIONS_PATH)
        return render(visit, "accounts/sign_in.html", form=FormState({"next": next_}))

    async def sign_in(self, visit: Visit) -> Response:
        form = FormState(visit.form)
        email = read_email(form.text("email", characters_max=EMAIL_CHARACTERS_MAX))
        password = form.value("password")
        if email is None:
            form.refuse("email", "Write the address as name@example.com.")
        if not password:
            form.refuse("password", "Fill this in.")
        if form.is_refused or email is None:
            return refused(visit, "accounts/sign_in.html", form)
        user_id = await check_password(visit.database, self._passwords, email=email, password=password)
        if user_id is None:
            form.refuse("password", "The address or the password is not right.")
            return refused(visit, "accounts/sign_in.html", form)
        async with visit.database.transaction() as tx:
            token = await sessions.start_session(
                tx,
                user_id,
                is_kept=form.is_checked("keep"),
                address=visit.client_address,
                agent=visit.request.headers.get("user-agent", ""),
            )
        response = redirect(visit, safe_next(form.value("next"), otherwise=ORGANIZATIONS_PATH))
        cookies.set_cookie(response, cookies.session_name(is_https=visit.is_https), token, is_https=visit.is_https)
        return response


async def _sign_out(visit: Visit) -> Response:
    async with visit.database.transaction() as tx:
        await sessions.end_session(tx, visit.user.id, visit.user.session_id)
    response = redirect(visit, "/sign-in")
    cookies.drop_cookie(response, cookies.session_name(is_https=visit.is_https), is_https=visit.is_https)
    return response


async def _organizations(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        found = await people.find_memberships(tx, visit.user.id)
    if len(found) == 1 and "choose" not in visit.query:
        return redirect(visit, f"/o/{found[0].slug}/")
    return render(visit, "accounts/organizations.html", memberships=found)
