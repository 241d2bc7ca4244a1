"""What is shown instead of a page: in the frame for members, in the plain frame for everybody else."""

from starlette.responses import Response

from regulars.kit.errors import ApiError
from regulars.web.access import roles_that_may
from regulars.web.errors import BadFilter, MethodRefused, NotAllowed, PageRefusal
from regulars.web.render import render
from regulars.web.visit import Visit

OUR_FAULT_MIN = 500


def refusal_page(visit: Visit, refusal: PageRefusal) -> Response:
    who = ""
    if isinstance(refusal, NotAllowed):
        names = [role.value for role in roles_that_may(refusal.action)]
        who = f"Roles that may {refusal.action}: {', '.join(names)}. An owner or admin can change roles under Team."
    way_back = ("Show the list without filters", refusal.path) if isinstance(refusal, BadFilter) else None
    shown = _page(visit, refusal.status, refusal.title, refusal.text, who, way_back=way_back)
    if isinstance(refusal, MethodRefused):
        shown.headers["allow"] = refusal.allowed
    return shown


def api_refusal_page(visit: Visit, error: ApiError) -> Response:
    """A use case refused: pages call the same ones as the API, and say the same sentence."""
    return _page(visit, error.status, error.title, error.detail, "")


def unavailable_page(visit: Visit) -> Response:
    shown = _page(
        visit, 503, "The database does not answer", "Nothing is lost; this page works again as soon as it does.", ""
    )
    shown.headers["retry-after"] = "1"
    return shown


def broken_page(visit: Visit) -> Response:
    text = "The failure is on our side, and it is in the server's log under this request's id."
    return _page(visit, 500, "This page broke", text, "")


def _page(
    visit: Visit, status: int, title: str, text: str, more: str = "", *, way_back: tuple[str, str] | None = None
) -> Response:
    template = "web/refusal.html" if visit.at is not None else "web/refusal_outside.html"
    return render(
        visit,
        template,
        status=status,
        status_code=status,
        title=title,
        text=text,
        more=more,
        way_back=way_back,
        can_retry=status >= OUR_FAULT_MIN,
    )
