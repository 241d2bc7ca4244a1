"""Pages about the request log: the last responses of the API, newest first, and one of them with its body."""

import json
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from starlette.responses import Response

from regulars.kit.ids import API_KEY
from regulars.organizations import manage
from regulars.request_log.entries import find_answer, list_answers
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
# Fields whose keys the caller chooses, so that the keys may be personal data.
_OPEN_MAPS: Final = ("attributes.", "properties.")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of the log, which a sentence on the page names."""

    days: int = RETENTION.days
    per_key: int = ENTRIES_PER_KEY_MAX
    refusals: int = REFUSALS_PER_DAY_MAX


def pages() -> tuple[Page, ...]:
    return (
        Page(path=PATH, needs=Action.READ_REQUEST_LOG, handle=_list),
        Page(path=f"{PATH}/{{entry}}", needs=Action.READ_REQUEST_LOG, handle=_show),
    )


async def _list(visit: Visit) -> Response:
    async with visit.database.reading() as tx:
        keys = {key.id: key for key in await manage.list_keys(tx.connection, visit.organization_id)}
        view = read_view(
            visit,
            "requests",
            PATH,
            filters=(
                Filter(
                    "kind",
                    "Answers",
                    ((ResponseFilter.REFUSED, "Refused"), (ResponseFilter.FAILED, "Failed on our side")),
                ),
                Filter("key", "Key", tuple((API_KEY.encode(key.id), key.name) for key in keys.values())),
            ),
        )
        found = await list_answers(
            tx,
            visit.organization_id,
            view.request,
            kind=ResponseFilter(view.value("kind") or ResponseFilter.ALL),
            api_key_id=API_KEY.decode(view.value("key")),
        )
    page = make_page(view, found)
    return render(visit, "integrate/requests.html", view=view, page=page, keys=keys, bounds=Bounds())


async def _show(visit: Visit) -> Response:
    try:
        identifier = UUID(visit.references[0])
    except ValueError:
        raise PageNotFound from None
    async with visit.database.reading() as tx:
        entry = await find_answer(tx, visit.organization_id, identifier)
        keys = {key.id: key for key in await manage.list_keys(tx.connection, visit.organization_id)}
    if entry is None:
        raise PageNotFound("This answer is no longer in the log, which keeps the last of each key for seven days.")
    return render(
        visit,
        "integrate/request.html",
        entry=entry,
        key=keys.get(entry.api_key_id),
        key_id=API_KEY.encode(entry.api_key_id),
        problem=_problem(visit, entry),
        bounds=Bounds(),
    )


def _problem(visit: Visit, entry: RequestLogEntry) -> str | None:
    """The body of the refusal. It never quotes a value; the names of a customer's attributes are masked too."""
    if entry.problem is None:
        return None
    problem: dict[str, Any] = json.loads(entry.problem)
    if not visit.sees_personal:
        problem = masked_problem(problem)
    return json.dumps(problem, indent=2, ensure_ascii=False)


def masked_problem(problem: dict[str, Any]) -> dict[str, Any]:
    names = [str(error.get("field", "")) for error in problem.get("errors", ())]
    shown = json.dumps(problem, ensure_ascii=False)
    for name in sorted(names, key=len, reverse=True):
        for prefix in _OPEN_MAPS:
            before, found, member = name.partition(prefix)
            if found and member:
                shown = shown.replace(json.dumps(name, ensure_ascii=False)[1:-1], before + prefix + HIDDEN)
    masked: dict[str, Any] = json.loads(shown)
    return masked
