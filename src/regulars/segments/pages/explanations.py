"""Explains why a customer is in or out of a segment: the condition tree, each line with the customer's value."""

from dataclasses import dataclass
from typing import Any

from regulars.conditions import customers, tree
from regulars.conditions.labels import Labels
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.profiles.search import suggest_profiles
from regulars.segments.explain import explain
from regulars.segments.saved.resolve import ResolvedSegment
from regulars.stores.find import name_stores
from regulars.web import mask
from regulars.web.visit import Visit


@dataclass(frozen=True, slots=True)
class ExplanationLine:
    """A line of the explanation. `is_met` is true if the line is a reason for being in the segment; `ticket` is the
    external id of the sale that the line names."""

    text: str
    is_met: bool
    ticket: str | None = None
    inner: tuple["ExplanationLine", ...] = ()
    is_group: bool = False


@dataclass(frozen=True, slots=True)
class ExplanationWriter:
    """Writes the explanation of a condition tree for a page."""

    labels: Labels
    stores: customers.StoreNames

    def line(self, explanation: customers.ConditionExplanation, *, in_none_group: bool = False) -> ExplanationLine:
        """The line of a condition, or of a group with its inner lines. In a *none* group, false conditions are met."""
        is_met = explanation.holds is (not in_none_group)
        if explanation.observation is None and explanation.inner:
            is_none_group = isinstance(explanation.condition, tree.Nothing)
            lines = tuple(self.line(inner, in_none_group=is_none_group) for inner in explanation.inner)
            return ExplanationLine(self.labels.sentence(explanation.condition), is_met, None, lines, is_group=True)
        text = explanation.condition.describe(explanation, self.labels, self.stores)
        sale = _sale_of(explanation.observation)
        return ExplanationLine(text, is_met, None if sale is None else sale.external_id)


def _sale_of(observation: customers.Observation | None) -> customers.CustomerSale | None:
    match observation:
        case customers.ObservedTimes(last=sale) | customers.ObservedDay(sale=sale):
            return sale
        case _:
            return None


async def explain_membership(
    tx: Tx, visit: Visit, search: str, resolved: ResolvedSegment, labels: Labels
) -> dict[str, Any]:
    """Explain the membership of the customer that the search finds; if it does not find exactly one, list those that it
    finds. Personal data is masked if the user may not see it."""
    people = await suggest_profiles(tx, visit.organization, search, sees_personal=visit.sees_personal)
    if len(people) != 1:
        return {"profile": None, "people": [mask.make_match(visit, person) for person in people]}
    [profile] = people
    explanation = await explain(tx, visit.organization_id, resolved.match, profile.id)
    if explanation is None:
        return {"profile": None, "people": []}
    # The segment may have a fault that is not in its valid conditions.
    is_in = explanation.is_in and not resolved.faults
    store_ids = {sale.store_id for sale in explanation.customer.sales}
    if explanation.customer.consent.store_id is not None:
        store_ids.add(explanation.customer.consent.store_id)
    stores = await name_stores(tx, visit.organization_id, store_ids)
    line = ExplanationWriter(labels, stores).line(explanation.tree)
    return {"profile": profile, "public_id": PROFILE.encode(profile.id), "is_in": is_in, "line": line}
