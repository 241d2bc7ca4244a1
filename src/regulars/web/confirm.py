"""The password again, before what does lasting harm in other hands: once in fifteen minutes."""

from dataclasses import replace
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from regulars.web.errors import NotConfirmed
from regulars.web.form import FormState
from regulars.web.render import redirect, render
from regulars.web.route import Door, Form, Page
from regulars.web.visit import Doorkeeper, Visit, safe_next

CONFIRMED_FOR: Final = timedelta(minutes=15)
PATH: Final = "/confirm"
FIELD: Final = "password_again"
# The address that a password manager fills the password in for.
OWNER_FIELD: Final = "password_again_of"
_OWN_FIELDS: Final = frozenset({FIELD, OWNER_FIELD})
TOO_MANY: Final = 429


async def confirm(visit: Visit, page: Page, doorkeeper: Doorkeeper) -> tuple[Visit, Response | None]:
    """The visit as its handler may see it, or the page that asks for the password.

    A form is asked for with all that was filled in, and goes to the same address with the password beside it. A page
    is opened again by the form below.
    """
    if FIELD not in visit.form:
        is_fresh = visit.now - visit.user.confirmed_at < CONFIRMED_FOR
        return visit, None if is_fresh else _ask(visit, page, FormState())
    form = FormState(visit.form)
    try:
        await doorkeeper.confirm(visit.user, form.value(FIELD), address=visit.client_address)
    except NotConfirmed as refusal:
        return visit, _ask(visit, page, form, refusal)
    first = {name: value for name, value in visit.form.items() if name not in _OWN_FIELDS}
    lists = {name: values for name, values in visit.form_lists.items() if name not in _OWN_FIELDS}
    return replace(visit, form=first, form_lists=lists), None


def pages(doorkeeper: Doorkeeper) -> tuple[Page, ...]:
    """Where a page that was asked for leads to: it is opened by its address, so there is nothing to carry along."""

    async def handle(visit: Visit) -> Response:
        form = FormState(visit.form)
        target = safe_next(form.value("next"), otherwise="/")
        try:
            await doorkeeper.confirm(visit.user, form.value(FIELD), address=visit.client_address)
        except NotConfirmed as refusal:
            return _page(visit, form, refusal, action=PATH, carried=[("next", target)], back=target)
        return redirect(visit, target)

    return (Form(path=PATH, needs=Door.SIGNED_IN, handle=handle),)


def _ask(visit: Visit, page: Page, form: FormState, refusal: NotConfirmed | None = None) -> Response:
    url = visit.request.url
    here = url.path + (f"?{url.query}" if url.query else "")
    came_from = urlsplit(visit.request.headers.get("referer", ""))
    back = safe_next(came_from.path + (f"?{came_from.query}" if came_from.query else ""), otherwise=visit.url("/"))
    if isinstance(page, Form):
        carried = [
            (name, value) for name, values in visit.form_lists.items() for value in values if name not in _OWN_FIELDS
        ]
        return _page(visit, form, refusal, action=here, carried=carried, back=back)
    return _page(visit, form, refusal, action=PATH, carried=[("next", here)], back=back)


def _page(
    visit: Visit,
    form: FormState,
    refusal: NotConfirmed | None,
    *,
    action: str,
    carried: list[tuple[str, str]],
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
        carried=carried,
        back=back,
        field_name=FIELD,
        owner_field=OWNER_FIELD,
        is_page=action == PATH,
    )
    if refusal is not None and refusal.wait_s:
        response.headers["Retry-After"] = str(refusal.wait_s)
    return response
