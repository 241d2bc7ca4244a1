"""Why somebody who is asked about is in or out, as the page shows it."""

from typing import Any

from regulars.conditions.labels import Labels
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.profiles.search import find_candidates
from regulars.segments.explain import explain
from regulars.segments.kept.resolve import Resolved
from regulars.segments.pages.answers import Answers
from regulars.stores.find import name_stores
from regulars.web import mask
from regulars.web.visit import Visit


async def tell_why(tx: Tx, visit: Visit, who: str, resolved: Resolved, words: Labels) -> dict[str, Any]:
    people = await find_candidates(
        tx,
        visit.organization_id,
        who,
        default_country=visit.place.default_country,
        sees_personal=visit.sees_personal,
    )
    if len(people) != 1:
        return {"profile": None, "people": [mask.candidate(visit, one) for one in people]}
    [profile] = people
    why = await explain(tx, visit.organization_id, resolved.match, profile.id)
    if why is None:
        return {"profile": None, "people": []}
    wanted = {sale.store_id for sale in why.customer.sales}
    if why.customer.standing.store_id is not None:
        wanted.add(why.customer.standing.store_id)
    stores = await name_stores(tx, visit.organization_id, wanted)
    line = Answers(words, stores).line(why.tree)
    return {"profile": profile, "canonical": PROFILE.encode(profile.id), "is_in": why.is_in, "line": line}
