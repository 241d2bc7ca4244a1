"""Why a customer is in or out of a segment: the condition tree, each line with the value that was found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from regulars.conditions import customers, tree
from regulars.conditions.labels import STATES, Labels
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.profiles.search import find_candidates
from regulars.segments.explain import explain
from regulars.segments.saved.resolve import ResolvedSegment
from regulars.stores.find import name_stores
from regulars.web import mask
from regulars.web.visit import Visit

NO_SALE = "nothing"


@dataclass(frozen=True, slots=True)
class ExplanationLine:
    """A line of the explanation; `is_good` is true if the line is a reason for being in the segment."""

    text: str
    is_good: bool
    ticket: str | None = None
    inner: tuple["ExplanationLine", ...] = ()
    is_group: bool = False


@dataclass(frozen=True, slots=True)
class ExplanationWriter:
    """Writes the explanation of a condition tree for a page."""

    labels: Labels
    stores: Mapping[UUID, str]

    def line(self, explained: customers.ConditionExplanation, *, under_none: bool = False) -> ExplanationLine:
        is_good = explained.holds is (not under_none)
        if explained.observation is None and explained.inner:
            lines = tuple(
                self.line(inner, under_none=isinstance(explained.condition, tree.Nothing)) for inner in explained.inner
            )
            return ExplanationLine(self.labels.sentence(explained.condition), is_good, None, lines, is_group=True)
        text, sale = self._describe(explained)
        return ExplanationLine(text, is_good, None if sale is None else sale.external_id)

    def _describe(self, explained: customers.ConditionExplanation) -> tuple[str, customers.CustomerSale | None]:
        if isinstance(explained.condition, tree.OfSales):
            return self._describe_sales(explained, explained.condition)
        return self._describe_customer(explained), None

    def _describe_customer(self, explained: customers.ConditionExplanation) -> str:
        condition, fmt, observation = explained.condition, self.labels.format, explained.observation
        match observation:
            case customers.ObservedValue(value=value) if isinstance(condition, tree.OfAttribute):
                if value is None:
                    return f"{condition.key} has no value"
                return f"{condition.key} is “{value}”" + (
                    "" if observation.is_readable else ", which its type cannot read"
                )
            case customers.ObservedConsent(consent=consent):
                return self._describe_consent(consent)
            case customers.ObservedTexts(times=times, last=last):
                return "Got no such text" if last is None else f"Got {fmt.number(times)}, last on {fmt.full_day(last)}"
            case customers.ObservedCampaign(is_received=is_received) if isinstance(condition, tree.ReceivedCampaign):
                return self.labels.sentence(msgspec.structs.replace(condition, is_=is_received))
            case customers.ObservedName(is_known=is_known):
                return "Known by name" if is_known else "Not known by name"
            case customers.ObservedCountry(country=country):
                return "No number with a country" if country is None else f"Number of {country}"
            case customers.ObservedSegment():
                is_in = explained.holds is getattr(condition, "is_", True)
                verb = "In" if is_in else "Not known whether in" if explained.holds is None else "Not in"
                fault = ", which has no members until it is fixed" if observation.is_faulty else ""
                return f"{verb} {observation.name}, version {observation.version}{fault}"
            case customers.ObservedDay(day=day) if day is not None:
                return f"Customer since {fmt.full_day(day)}"
            case _:
                return self.labels.sentence(condition)

    def _describe_consent(self, consent: customers.CustomerConsent) -> str:
        since = "" if consent.since is None else f" since {self.labels.format.full_day(consent.since)}"
        source = "" if consent.source is None else f", by {consent.source}"
        store = "" if consent.store_id is None else f", in {self.stores.get(consent.store_id, 'a store')}"
        return f"{STATES[consent.state]}{since}{source}{store}"

    def _describe_sales(
        self, explained: customers.ConditionExplanation, condition: tree.OfSales
    ) -> tuple[str, customers.CustomerSale | None]:
        fmt, among = self.labels.format, self.labels.among(condition)
        window = (
            ""
            if isinstance(condition, tree.FirstPurchase | tree.LastPurchase)
            else self.labels.window(condition.window)
        )
        match explained.observation:
            case customers.ObservedTimes(times=times, last=last):
                verb = "Returned" if isinstance(condition, tree.Returned) else "Bought"
                if last is None:
                    return f"{verb} {NO_SALE}{among}{window}", None
                how_often = "once" if times == 1 else f"{fmt.number(times)} times"
                if tree.is_of_days(condition):
                    how_often = "on one day" if times == 1 else f"on {fmt.number(times)} days"
                where = self.stores.get(last.store_id, "")
                in_store = f" in {where}" if where else ""
                return f"{verb} {how_often}{among}{window}, last on {fmt.full_day(last.day)}{in_store}", last
            case customers.ObservedMoney(cents=cents, currency=currency):
                if cents is None:
                    return f"No ticket in {currency}{among}{window}", None
                verb = "Spent" if isinstance(condition, tree.Spend) else "Largest ticket:"
                net = " net" if not isinstance(condition, tree.TicketValue) else ""
                return f"{verb} {fmt.money(cents, currency)}{net}{among}{window}", None
            case customers.ObservedArticles(quantity=quantity):
                return f"{fmt.number(quantity.normalize())} articles net{among}{window}", None
            case customers.ObservedDay(day=day, sale=sale):
                which = "First" if isinstance(condition, tree.FirstPurchase) else "Last"
                if day is None:
                    return f"Never bought{among}", None
                return f"{which} purchase{among} on {fmt.full_day(day)}", sale
            case _:
                return self.labels.sentence(condition), None


async def explain_membership(
    tx: Tx, visit: Visit, who: str, resolved: ResolvedSegment, labels: Labels
) -> dict[str, Any]:
    people = await find_candidates(
        tx,
        visit.organization_id,
        who,
        default_country=visit.organization.default_country,
        sees_personal=visit.sees_personal,
    )
    if len(people) != 1:
        return {"profile": None, "people": [mask.candidate(visit, person) for person in people]}
    [profile] = people
    why = await explain(tx, visit.organization_id, resolved.match, profile.id)
    if why is None:
        return {"profile": None, "people": []}
    store_ids = {sale.store_id for sale in why.customer.sales}
    if why.customer.consent.store_id is not None:
        store_ids.add(why.customer.consent.store_id)
    stores = await name_stores(tx, visit.organization_id, store_ids)
    line = ExplanationWriter(labels, stores).line(why.tree)
    return {"profile": profile, "canonical": PROFILE.encode(profile.id), "is_in": why.is_in, "line": line}
