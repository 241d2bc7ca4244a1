"""Ask for the password again before a sensitive page or form, at most once in 15 minutes."""

from dataclasses import replace
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from regulars.web.errors import NotConfirmed
from regulars.web.form import FormState
from regulars.web.render import redirect, render
from regulars.web.route import Audience, Form, Page
from regulars.web.visit import SessionStore, Visit, safe_next

CONFIRMED_FOR: Final = timedelta(minutes=15)
PATH: Final = "/confirm"
FIELD: Final = "password_again"
# A hidden field with the user's email address, for password managers.
OWNER_FIELD: Final = "password_again_of"
_PASSWORD_FIELDS: Final = frozenset({FIELD, OWNER_FIELD})
TOO_MANY: Final = 429


async def confirm(visit: Visit, page: Page, sessions: SessionStore) -> tuple[Visit, Response | None]:
    """The visit for the handler, or the page that asks for the password.

    If the request is a form, the page that asks for the password contains all its fields and posts to the same address
    with the password added. Otherwise it posts to `/confirm`, which redirects to the requested page.
    """
    if FIELD not in visit.form:
        is_fresh = visit.now - visit.user.confirmed_at < CONFIRMED_FOR
        return visit, None if is_fresh else _ask_for_password(visit, page, FormState())
    form = FormState(visit.form)
    try:
        await sessions.confirm(visit.user, form.value(FIELD), address=visit.client_address)
    except NotConfirmed as refusal:
        return visit, _ask_for_password(visit, page, form, refusal)
    first_values = {name: value for name, value in visit.form.items() if name not in _PASSWORD_FIELDS}
    lists = {name: values for name, values in visit.form_lists.items() if name not in _PASSWORD_FIELDS}
    return replace(visit, form=first_values, form_lists=lists), None


def pages(sessions: SessionStore) -> tuple[Page, ...]:
    """The form that confirms the password for a page and redirects to it."""

    async def handle(visit: Visit) -> Response:
        form = FormState(visit.form)
        target = safe_next(form.value("next"), otherwise="/")
        try:
            await sessions.confirm(visit.user, form.value(FIELD), address=visit.client_address)
        except NotConfirmed as refusal:
            return _page(visit, form, refusal, action=PATH, hidden_fields=[("next", target)], back=target)
        return redirect(visit, target)

    return (Form(path=PATH, needs=Audience.SIGNED_IN, handle=handle),)


def _ask_for_password(visit: Visit, page: Page, form: FormState, refusal: NotConfirmed | None = None) -> Response:
    url = visit.request.url
    here = url.path + (f"?{url.query}" if url.query else "")
    came_from = urlsplit(visit.request.headers.get("referer", ""))
    back = safe_next(came_from.path + (f"?{came_from.query}" if came_from.query else ""), otherwise=visit.url("/"))
    if isinstance(page, Form):
        hidden_fields = [
            (name, value)
            for name, values in visit.form_lists.items()
            for value in values
            if name not in _PASSWORD_FIELDS
        ]
        return _page(visit, form, refusal, action=here, hidden_fields=hidden_fields, back=back)
    return _page(visit, form, refusal, action=PATH, hidden_fields=[("next", here)], back=back)


def _page(
    visit: Visit,
    form: FormState,
    refusal: NotConfirmed | None,
    *,
    action: str,
    hidden_fields: list[tuple[str, str]],
    back: str,
) -> Response:
    status = 200
    if refusal is not None:
        form.refuse(FIELD, str(refusal))
        status = TOO_MANY if refusal.wait_s else 400
    response = render(
        visit,
        "web/confirm.html",
        status=status,
        form=form,
        action=action,
        hidden_fields=hidden_fields,
        back=back,
        field_name=FIELD,
        owner_field=OWNER_FIELD,
        is_page=action == PATH,
    )
    if refusal is not None and refusal.wait_s:
        response.headers["Retry-After"] = str(refusal.wait_s)
    return response
