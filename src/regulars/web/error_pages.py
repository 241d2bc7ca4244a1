"""Error pages: pages of an organization show its navigation, other pages do not."""

from starlette.responses import Response

from regulars.kit.refusals import Refused
from regulars.web.access import roles_that_may
from regulars.web.errors import BadFilter, MethodRefused, NotAllowed
from regulars.web.render import render
from regulars.web.visit import Visit

SERVER_ERROR_MIN = 500


def refusal_page(visit: Visit, refusal: Refused) -> Response:
    hint = ""
    if isinstance(refusal, NotAllowed):
        names = [role.value for role in roles_that_may(refusal.action)]
        hint = f"Roles that may {refusal.action}: {', '.join(names)}. An owner or admin can change roles under Team."
    way_back = ("Show the list without filters", refusal.path) if isinstance(refusal, BadFilter) else None
    page = _error_page(visit, refusal.status, refusal.title, refusal.sentence, hint, way_back=way_back)
    if isinstance(refusal, MethodRefused):
        page.headers["allow"] = refusal.allowed
    return page


def unavailable_page(visit: Visit) -> Response:
    page = _error_page(visit, 503, "The database does not respond", "Nothing is lost. Try again in a moment.", "")
    page.headers["retry-after"] = "1"
    return page


def broken_page(visit: Visit) -> Response:
    text = "This is a fault of the server. Its log has the details under this request's id."
    return _error_page(visit, 500, "Something went wrong", text, "")


def _error_page(
    visit: Visit, status: int, title: str, text: str, hint: str = "", *, way_back: tuple[str, str] | None = None
) -> Response:
    template = "web/refusal.html" if visit.current_organization is not None else "web/refusal_outside.html"
    return render(
        visit,
        template,
        status=status,
        status_code=status,
        title=title,
        text=text,
        more=hint,
        way_back=way_back,
        can_retry=status >= SERVER_ERROR_MIN,
    )
