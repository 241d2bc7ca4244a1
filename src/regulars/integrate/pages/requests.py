"""Pages about the request log: the last requests to the API, newest first, and the page of one request with its error
response."""

import json
from typing import Any, Final
from uuid import UUID

from starlette.responses import Response

from regulars.kit.ids import API_KEY
from regulars.organizations import manage
from regulars.request_log.entries import find_response, list_responses
from regulars.request_log.model import (
    ENTRIES_PER_KEY_MAX,
    REFUSALS_PER_DAY_MAX,
    RETENTION,
    RequestLogEntry,
    ResponseFilter,
)
from regulars.web.access import Action
from regulars.web.errors import PageNotFound
from regulars.web.listing import Filter, make_page, read_view
from regulars.web.mask import HIDDEN
from regulars.web.render import render
from regulars.web.route import Page
from regulars.web.visit import Visit

PATH: Final = "/requests"
# Fields with a map whose keys the caller chooses, so that the keys may be personal data.
_MAP_PREFIXES: Final = ("attributes.", "properties.")
# The limits of the log that the page states.
_LIMITS: Final = {"days": RETENTION.days, "per_key": ENTRIES_PER_KEY_MAX, "refusals": REFUSALS_PER_DAY_MAX}


async def _list_requests(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        keys = {key.id: key for key in await manage.list_keys(tx.connection, visit.organization_id)}
        view = read_view(
            visit,
            "requests",
            PATH,
            filters=(
                Filter(
                    "kind",
                    "Response",
                    ((ResponseFilter.REFUSED, "Rejected"), (ResponseFilter.FAILED, "Error of this server")),
                ),
                Filter("key", "Key", tuple((API_KEY.encode(key.id), key.name) for key in keys.values())),
            ),
        )
        requests = await list_responses(
            tx,
            visit.organization_id,
            view.request,
            kind=ResponseFilter(view.value("kind") or ResponseFilter.ALL),
            api_key_id=API_KEY.decode(view.value("key")),
        )
    page = make_page(view, requests)
    return render(visit, "integrate/requests.html", view=view, page=page, keys=keys, limits=_LIMITS)


async def _show_request(visit: Visit) -> Response:
    try:
        identifier = UUID(visit.references[0])
    except ValueError:
        raise PageNotFound from None
    async with visit.database.reading() as tx:
        entry = await find_response(tx, visit.organization_id, identifier)
        keys = {key.id: key for key in await manage.list_keys(tx.connection, visit.organization_id)}
    if entry is None:
        raise PageNotFound("This request is no longer in the log, which has the requests of the last seven days.")
    return render(
        visit,
        "integrate/request.html",
        entry=entry,
        key=keys.get(entry.api_key_id),
        key_id=API_KEY.encode(entry.api_key_id),
        problem=_format_problem(visit, entry),
        limits=_LIMITS,
    )


def _format_problem(visit: Visit, entry: RequestLogEntry) -> str | None:
    """Return the body of the error response as JSON. It never contains a value that was sent; attribute names, which
    may be personal data too, are masked for users who may not see them."""
    if entry.problem is None:
        return None
    problem: dict[str, Any] = json.loads(entry.problem)
    if not visit.sees_personal:
        problem = mask_problem(problem)
    return json.dumps(problem, indent=2, ensure_ascii=False)


def mask_problem(problem: dict[str, Any]) -> dict[str, Any]:
    """Hide the attribute and property names in the paths of faulty fields, such as `attributes.birthday`."""
    fields = [str(error.get("field", "")) for error in problem.get("errors", ())]
    text = json.dumps(problem, ensure_ascii=False)
    # The path of a field may be the beginning of another path, so the longest path is replaced first.
    for field in sorted(fields, key=len, reverse=True):
        for prefix in _MAP_PREFIXES:
            before, separator, key = field.partition(prefix)
            if separator and key:
                text = text.replace(json.dumps(field, ensure_ascii=False)[1:-1], before + prefix + HIDDEN)
    masked: dict[str, Any] = json.loads(text)
    return masked


PAGES: Final = (
    Page(path=PATH, needs=Action.READ_REQUEST_LOG, handle=_list_requests),
    Page(path=f"{PATH}/{{entry}}", needs=Action.READ_REQUEST_LOG, handle=_show_request),
)
