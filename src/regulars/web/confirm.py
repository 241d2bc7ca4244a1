"""Ask for the password again before a sensitive page or form, at most once in 15 minutes."""

from dataclasses import replace
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from regulars.web.errors import NotConfirmed
from regulars.web.form import FormState
from regulars.web.render import redirect, render_form
from regulars.web.route import Audience, Form, Harm, Page
from regulars.web.visit import SessionStore, Visit, safe_next

CONFIRMED_FOR: Final = timedelta(minutes=15)
PATH: Final = "/confirm"
FIELD: Final = "password_again"
# A hidden field with the user's email address, for password managers.
OWNER_FIELD: Final = "password_again_of"
_PASSWORD_FIELDS: Final = frozenset({FIELD, OWNER_FIELD})


async def confirm(visit: Visit, page: Page, sessions: SessionStore) -> tuple[Visit, Response | None]:
    """Return the visit for the handler, and the page that asks for the password if the user must enter it first.

    For a submitted form, that page has all submitted values as hidden fields, and posts them with the password to the
    same address. For any other page it posts to `/confirm`, which redirects to the requested page.
    """
    if FIELD not in visit.form:
        is_confirmed = visit.now - visit.user.password_confirmed_at < CONFIRMED_FOR
        return visit, None if is_confirmed else _ask_for_password(visit, page)
    try:
        await sessions.confirm(visit, visit.form[FIELD])
    except NotConfirmed as refusal:
        return visit, _ask_for_password(visit, page, refusal)
    form_values = {name: value for name, value in visit.form.items() if name not in _PASSWORD_FIELDS}
    form_lists = {name: values for name, values in visit.form_lists.items() if name not in _PASSWORD_FIELDS}
    return replace(visit, form=form_values, form_lists=form_lists), None


def pages(sessions: SessionStore) -> tuple[Page, ...]:
    """The target of the password form for pages: it checks the password and redirects to the page."""

    async def handle(visit: Visit) -> Response:
        target = safe_next(visit.form.get("next"), otherwise="/")
        try:
            await sessions.confirm(visit, visit.form.get(FIELD, ""))
        except NotConfirmed as refusal:
            return _password_page(visit, refusal, action=PATH, hidden_fields=[("next", target)], back=target)
        return redirect(visit, target)

    return (Form(path=PATH, needs=Audience.SIGNED_IN, handle=handle, harm=Harm.CHANGES),)


def _ask_for_password(visit: Visit, page: Page, refusal: NotConfirmed | None = None) -> Response:
    url = visit.request.url
    this_url = url.path + (f"?{url.query}" if url.query else "")
    came_from = urlsplit(visit.request.headers.get("referer", ""))
    back = safe_next(came_from.path + (f"?{came_from.query}" if came_from.query else ""), otherwise=visit.url("/"))
    action, hidden_fields = PATH, [("next", this_url)]
    if isinstance(page, Form):
        action, hidden_fields = (
            this_url,
            [
                (name, value)
                for name, values in visit.form_lists.items()
                for value in values
                if name not in _PASSWORD_FIELDS
            ],
        )
    return _password_page(visit, refusal, action=action, hidden_fields=hidden_fields, back=back)


def _password_page(
    visit: Visit, refusal: NotConfirmed | None, *, action: str, hidden_fields: list[tuple[str, str]], back: str
) -> Response:
    form = FormState(visit.form)
    if refusal is not None:
        form.refusal(FIELD, refusal)
    return render_form(
        visit,
        "web/confirm.html",
        form,
        action=action,
        hidden_fields=hidden_fields,
        back=back,
        field_name=FIELD,
        owner_field=OWNER_FIELD,
        is_page=action == PATH,
    )
