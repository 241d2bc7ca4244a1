"""What the pages of accounts share."""

from typing import Any
from uuid import UUID

from starlette.responses import Response

from regulars.accounts import sessions
from regulars.accounts.errors import TooManyAttempts
from regulars.accounts.model import ABSOLUTE
from regulars.accounts.passwords import objection
from regulars.kit.db import Tx
from regulars.web import cookies
from regulars.web.form import FormState
from regulars.web.render import redirect, render
from regulars.web.visit import Visit

ORGANIZATIONS_PATH = "/organizations"
ACCOUNT_PATH = "/account"
SIGN_IN_PATH = "/sign-in"
TOO_MANY = 429


async def begin_session(tx: Tx, visit: Visit, user_id: UUID, *, is_kept: bool = False) -> str:
    """Always a new token: one that a browser brought along, or was made to bring, is never taken up."""
    return await sessions.start_session(
        tx,
        user_id,
        is_kept=is_kept,
        address=visit.client_address,
        agent=visit.request.headers.get("user-agent", ""),
    )


def signed_in(visit: Visit, token: str, url: str, *, is_kept: bool = False) -> Response:
    """To the page, with the session's cookie; without "keep me signed in" it ends with the browser."""
    response = redirect(visit, url)
    name = cookies.session_name(is_https=visit.is_https)
    age_s = int(ABSOLUTE.total_seconds()) if is_kept else None
    cookies.set_cookie(response, name, token, is_https=visit.is_https, max_age_s=age_s)
    return response


def read_new_password(form: FormState, *, email: str) -> str:
    """The password that was chosen twice the same, if it can be taken."""
    password = form.value("password")
    complaint = objection(password, email=email)
    if complaint is not None:
        form.refuse("password", complaint)
    elif form.value("repeated") != password:
        form.refuse("repeated", "This is not the same as above.")
    return password


def too_many(
    visit: Visit, template: str, form: FormState, field: str, refusal: TooManyAttempts, **values: Any
) -> Response:
    """The form again, with how long to wait."""
    form.refuse(field, str(refusal))
    response = render(visit, template, status=TOO_MANY, form=form, **values)
    response.headers["Retry-After"] = str(refusal.wait_s)
    return response
