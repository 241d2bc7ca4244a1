"""Helpers of the pages that sign in or set a password: start a session, set its cookie, read a new password."""

from uuid import UUID

from starlette.responses import Response

from regulars.accounts import sessions
from regulars.accounts.model import SESSION_AGE_MAX
from regulars.accounts.passwords import find_weakness
from regulars.kit.db import Tx
from regulars.web import cookies
from regulars.web.form import FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit

ORGANIZATIONS_PATH = "/organizations"
ACCOUNT_PATH = "/account"
SIGN_IN_PATH = "/sign-in"


async def begin_session(tx: Tx, visit: Visit, user_id: UUID, *, is_remembered: bool = False) -> str:
    """Start a session with a new token: a token that the browser sent may have been planted by an attacker."""
    return await sessions.start_session(
        tx,
        user_id,
        is_remembered=is_remembered,
        address=visit.client_address,
        agent=visit.request.headers.get("user-agent", ""),
    )


def redirect_signed_in(visit: Visit, token: str, url: str, *, is_remembered: bool = False) -> Response:
    """Redirect with the session cookie; without "keep me signed in" the browser deletes it when it closes."""
    response = redirect(visit, url)
    name = cookies.session_name(is_https=visit.is_https)
    age_s = int(SESSION_AGE_MAX.total_seconds()) if is_remembered else None
    cookies.set_cookie(response, name, token, is_https=visit.is_https, max_age_s=age_s)
    return response


def redirect_signed_out(visit: Visit) -> Response:
    response = redirect(visit, SIGN_IN_PATH)
    # The text of a search may be the name of a customer.
    for name in (cookies.session_name(is_https=visit.is_https), cookies.SEARCH):
        cookies.drop_cookie(response, name, is_https=visit.is_https)
    return response


def read_new_password(form: FormState, *, email: str) -> str:
    """Read a new password, and refuse a weak one or one that was repeated differently."""
    password = form.value("password")
    weakness = find_weakness(password, email=email)
    if weakness is not None:
        form.refuse("password", weakness)
    elif form.value("repeated") != password:
        form.refuse("repeated", "The passwords do not match.")
    return password
