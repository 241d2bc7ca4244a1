"""The list that a field of a condition shows while the user types, also in journeys. Typed words may be personal, so
they are sent as a form and are in no address."""

from starlette.responses import Response

from regulars.conditions.field_suggestions import Source, suggest_for_field
from regulars.web.errors import BadForm
from regulars.web.render import render
from regulars.web.visit import Visit


async def suggest(visit: Visit) -> Response:
    of, typed, key = (visit.form.get(name, "") for name in ("of", "typed", "key"))
    if of not in set(Source):
        raise BadForm("No field suggests this.")
    async with visit.database.reading() as tx:
        suggestions = await suggest_for_field(
            tx, visit.organization_id, Source(of), typed, key=key, sees_personal=visit.sees_personal
        )
    return render(visit, "conditions/suggestion_list.html", suggestions=suggestions)
