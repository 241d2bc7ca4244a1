"""Explains why a customer is in or out of a segment: the condition tree, each line with the customer's value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from regulars.conditions import customers, tree
from regulars.conditions.labels import SOURCES, STATES, Labels
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
    stores: Mapping[UUID, str]

    def line(self, explanation: customers.ConditionExplanation, *, in_none_group: bool = False) -> ExplanationLine:
        """The line of a condition, or of a group with its inner lines. In a *none* group, false conditions are met."""
        is_met = explanation.holds is (not in_none_group)
        if explanation.observation is None and explanation.inner:
            is_none_group = isinstance(explanation.condition, tree.Nothing)
            lines = tuple(self.line(inner, in_none_group=is_none_group) for inner in explanation.inner)
            return ExplanationLine(self.labels.sentence(explanation.condition), is_met, None, lines, is_group=True)
        text, sale = self._describe(explanation)
        return ExplanationLine(text, is_met, None if sale is None else sale.external_id)

    def _describe(self, explanation: customers.ConditionExplanation) -> tuple[str, customers.CustomerSale | None]:
        if isinstance(explanation.condition, tree.SalesCondition):
            return self._describe_sales(explanation, explanation.condition)
        return self._describe_customer(explanation), None

    def _describe_customer(self, explanation: customers.ConditionExplanation) -> str:
        condition, formats, observation = explanation.condition, self.labels.format, explanation.observation
        match observation:
            case customers.ObservedValue(value=value) if isinstance(condition, tree.OfAttribute):
                if value is None:
                    return f"{condition.key} has no value"
                return f"{condition.key} is “{value}”" + (
                    "" if observation.is_parsable else ", which does not fit its type"
                )
            case customers.ObservedConsent(consent=consent):
                return self._describe_consent(consent)
            case customers.ObservedTexts(times=times, last=last):
                texts = "1 text" if times == 1 else f"{formats.number(times)} texts"
                return "Got no such text" if last is None else f"Got {texts}, last on {formats.full_day(last)}"
            case customers.ObservedCampaign(is_received=is_received) if isinstance(condition, tree.ReceivedCampaign):
                return self.labels.sentence(msgspec.structs.replace(condition, is_=is_received))
            case customers.ObservedName(is_known=is_known):
                return "Known by name" if is_known else "Not known by name"
            case customers.ObservedCountry(country=country):
                return self._describe_country(country)
            case customers.ObservedSegment():
                is_in = explanation.holds is getattr(condition, "is_", True)
                verb = "In" if is_in else "Not known whether in" if explanation.holds is None else "Not in"
                fault = ", which has no members until it is fixed" if observation.is_faulty else ""
                return f"{verb} {observation.name}, version {observation.version}{fault}"
            case customers.ObservedDay(day=day) if day is not None:
                return f"Customer since {formats.full_day(day)}"
            case _:
                return self.labels.sentence(condition)

    def _describe_country(self, country: str | None) -> str:
        if country is None:
            return "No phone number with a known country"
        return f"Phone number from {self.labels.names.countries.get(country, country)}"

    def _describe_consent(self, consent: customers.CustomerConsent) -> str:
        since = "" if consent.since is None else f" since {self.labels.format.full_day(consent.since)}"
        source = "" if consent.source is None else f", source {SOURCES.get(consent.source, consent.source)}"
        store = "" if consent.store_id is None else f", store {self.stores.get(consent.store_id, 'not known')}"
        return f"{STATES[consent.state]}{since}{source}{store}"

    def _describe_sales(
        self, explanation: customers.ConditionExplanation, condition: tree.SalesCondition
    ) -> tuple[str, customers.CustomerSale | None]:
        formats, filter_text = self.labels.format, self.labels.sales_filter(condition)
        window = (
            ""
            if isinstance(condition, tree.FirstPurchase | tree.LastPurchase)
            else self.labels.window(condition.window)
        )
        match explanation.observation:
            case customers.ObservedTimes(times=times, last=last):
                verb = "Returned" if isinstance(condition, tree.Returned) else "Bought"
                if last is None:
                    return f"{verb} nothing{filter_text}{window}", None
                how_often = "once" if times == 1 else f"{formats.number(times)} times"
                if tree.counts_days(condition):
                    how_often = "on one day" if times == 1 else f"on {formats.number(times)} days"
                where = self.stores.get(last.store_id, "")
                in_store = f" in {where}" if where else ""
                return f"{verb} {how_often}{filter_text}{window}, last on {formats.full_day(last.day)}{in_store}", last
            case customers.ObservedMoney(cents=cents, currency=currency):
                if cents is None:
                    return f"No ticket in {currency}{filter_text}{window}", None
                amount = "Net spend" if isinstance(condition, tree.Spend) else "Largest ticket"
                return f"{amount} {formats.money(cents, currency)}{filter_text}{window}", None
            case customers.ObservedArticles(quantity=quantity):
                return f"{formats.number(quantity.normalize())} articles minus returns{filter_text}{window}", None
            case customers.ObservedDay(day=day, sale=sale):
                ordinal = "First" if isinstance(condition, tree.FirstPurchase) else "Last"
                if day is None:
                    return f"Never bought{filter_text}", None
                return f"{ordinal} purchase{filter_text} on {formats.full_day(day)}", sale
            case _:
                return self.labels.sentence(condition), None


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
