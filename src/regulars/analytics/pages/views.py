"""Handles the forms that save and delete a view: a page of analytics with its filters, under a name."""

from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response

from regulars.accounts.audit.log import record_act
from regulars.analytics.model import NAME_CHARACTERS_MAX, QUERY_CHARACTERS_MAX, VIEWS_MAX, SavedView, TooManyViews
from regulars.analytics.saved_views import delete_view, save_view
from regulars.web.errors import BadForm
from regulars.web.form import FormState
from regulars.web.render import redirect
from regulars.web.visit import Visit

PAGES: Final = ("sales", "customers", "products", "stores", "attribution", "explore")


async def save(visit: Visit) -> Response:
    page, url, query = _read_target(visit)
    form = FormState(visit.form)
    name = form.text("name", characters_max=NAME_CHARACTERS_MAX)
    view = SavedView(name, query, is_shared=visit.form.get("shared") == "1")
    if form.is_refused:
        raise BadForm(f"The name of a view: {form.errors['name']}")
    try:
        async with visit.database.transaction() as tx:
            await save_view(tx, visit.organization_id, visit.user.id, page=page, view=view)
            after = {"page": page, **({"shared": True} if view.is_shared else {})}
            await record_act(tx, visit, "view.save", name, after=after)
    except TooManyViews:
        raise BadForm(f"You can save at most {VIEWS_MAX} views of a page. Delete one first.") from None
    return redirect(visit, url, done=f"View saved as “{name}”.")


async def delete(visit: Visit) -> Response:
    page, url, _ = _read_target(visit)
    name = visit.form.get("name", "")
    async with visit.database.transaction() as tx:
        if await delete_view(tx, visit.organization_id, visit.user.id, page=page, name=name):
            await record_act(tx, visit, "view.delete", name, before={"page": page})
    return redirect(visit, url, done="View deleted.")


def _read_target(visit: Visit) -> tuple[str, str, str]:
    """Read the page, the URL to return to, and its normalised query string."""
    page, query = visit.form.get("page", ""), visit.form.get("query", "")
    if page not in PAGES:
        raise BadForm("Open the page again and save the view there.")
    fields = urlencode(parse_qsl(query))
    if len(fields) > QUERY_CHARACTERS_MAX:
        raise BadForm("This view has too many filters. Choose fewer, such as fewer stores, and save it again.")
    return page, visit.url(f"/analyse/{page}") + (f"?{fields}" if fields else ""), fields
