"""Why somebody who is asked about is in or out, as the page shows it."""

from typing import Any

from regulars.conditions.labels import Labels
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, read_reference
from regulars.profiles.browse.search import search_exactly
from regulars.profiles.find import find_profile
from regulars.profiles.model import Profile
from regulars.segments.explain import explain
from regulars.segments.kept.resolve import Resolved
from regulars.segments.pages.answers import Answers
from regulars.stores.find import name_stores
from regulars.web.visit import Visit


async def tell_why(tx: Tx, visit: Visit, who: str, resolved: Resolved, words: Labels) -> dict[str, Any]:
    profile = await _find_person(tx, visit, who)
    if profile is None:
        return {"profile": None}
    why = await explain(tx, visit.organization_id, resolved.match, profile.id)
    if why is None:
        return {"profile": None}
    wanted = {sale.store_id for sale in why.customer.sales}
    if why.customer.standing.store_id is not None:
        wanted.add(why.customer.standing.store_id)
    stores = await name_stores(tx, visit.organization_id, wanted)
    line = Answers(words, stores).line(why.tree)
    return {"profile": profile, "canonical": PROFILE.encode(profile.id), "is_in": why.is_in, "line": line}


async def _find_person(tx: Tx, visit: Visit, text: str) -> Profile | None:
    """By any id, or by a number that only one customer has."""
    found = await search_exactly(
        tx, visit.organization_id, text, default_country=visit.place.default_country, sees_personal=True
    )
    if len(found) == 1:
        return found[0]
    return await find_profile(tx, visit.organization_id, read_reference(PROFILE, text)) if found else None
