"""Loads only the customer data that conditions need, for several customers at once."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.conditions import queries, tree
from regulars.conditions.customers import Customer, CustomerConsent, CustomerSale, SaleLine, Text
from regulars.conditions.kind import Needs
from regulars.consent.check import CheckItem, ConsentVerdict, check_consents
from regulars.consent.model import Reason, Status
from regulars.kit.db import Tx
from regulars.kit.ids import CAMPAIGN, ById
from regulars.organizations.manage import find_secret_and_country
from regulars.profiles.model import Profile
from regulars.profiles.search import find_profiles_by_ids
from regulars.sales.model import millionths
from regulars.texts.find import find_suppressed
from regulars.texts.number_location import find_country

# More than the offset of any time zone from UTC.
ZONE_OFFSET_MAX: Final = timedelta(days=2)
_STATES: Final[dict[Reason, tree.ConsentState]] = {
    Reason.SUBSCRIBED: "may_be_texted",
    Reason.UNSUBSCRIBED: "withdrawn",
    Reason.DO_NOT_CONTACT: "do_not_contact",
    Reason.SUPPRESSED: "do_not_contact",
}


async def load_customers(
    tx: Tx,
    organization_id: UUID,
    conditions: Iterable[tree.Condition],
    ids: Collection[UUID],
    *,
    zone: tzinfo,
    today: date,
    with_consent: bool = False,
    sales_max: int | None = None,
) -> dict[UUID, Customer]:
    """Load the customers that exist, with the data that is enough to evaluate the conditions today or on a later day.
    Of each customer, load at most the `sales_max` sales that were recorded last."""
    # The conditions and all conditions inside them.
    parts = [part for condition in conditions for _, part in tree.walk(condition)]
    needs = [part.needs(today) for part in parts]
    rows = await find_profiles_by_ids(tx, organization_id, list(ids))
    existing_ids = [row.id for row in rows]
    needs_consent = with_consent or any(it.with_consent for it in needs)
    consents = await _find_consents(tx, organization_id, rows, zone) if needs_consent else {}
    history = _HistoryLoader(tx, organization_id, existing_ids, zone)
    sales = await history.find_sales(needs, sales_max)
    texts = await history.find_texts(needs)
    campaigns = await history.find_campaigns({id_ for part in parts for id_ in part.references().campaigns})
    return {
        row.id: Customer(
            id=row.id,
            attributes=row.attributes,
            created=day_of(row.created_at, zone),
            is_named=any(name is not None and name.strip() for name in (row.first_name, row.last_name)),
            country=find_country(row.phone_number) if row.phone_reachable and row.phone_number else None,
            consent=consents.get(row.id, CustomerConsent("never_asked")),
            sales=tuple(sales.get(row.id, ())),
            texts=tuple(texts.get(row.id, ())),
            campaigns=campaigns.get(row.id, {}),
        )
        for row in rows
    }


async def find_states(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, tree.ConsentState]:
    """The current consent state of each customer who exists."""
    rows = await find_profiles_by_ids(tx, organization_id, list(ids))
    consents = await _find_consents(tx, organization_id, rows, UTC)
    return {profile_id: consent.state for profile_id, consent in consents.items()}


async def _find_consents(
    tx: Tx, organization_id: UUID, rows: Collection[Profile], zone: tzinfo
) -> dict[UUID, CustomerConsent]:
    """The consent state from the subscriptions of each customer, as in `/v1/subscriptions/check`; without a
    subscription, from the customer's own number."""
    secret = (await find_secret_and_country(tx.connection, organization_id)).secret
    items = [CheckItem(profile=ById(row.id)) for row in rows]
    items += [CheckItem(phone_number=row.phone_number if row.phone_reachable else None) for row in rows]
    verdicts = await check_consents(tx, organization_id, items, secret=secret, find_suppressed=find_suppressed)
    by_profile, by_number = verdicts[: len(rows)], verdicts[len(rows) :]
    return {
        row.id: _consent_of(verdict, number_verdict, zone)
        for row, verdict, number_verdict in zip(rows, by_profile, by_number, strict=True)
    }


def _consent_of(verdict: ConsentVerdict, number_verdict: ConsentVerdict, zone: tzinfo) -> CustomerConsent:
    subscription = verdict.subscription
    if subscription is None:
        return CustomerConsent("do_not_contact" if _is_on_do_not_contact_list(number_verdict) else "never_asked")
    state = subscription.state
    decided_at = state.consented_at if state.status is Status.SUBSCRIBED else state.unsubscribed_at
    return CustomerConsent(
        _STATES[verdict.reason],
        state.source,
        state.store_id,
        None if decided_at is None else day_of(decided_at, zone),
    )


def _is_on_do_not_contact_list(number_verdict: ConsentVerdict) -> bool:
    """Whether the number was withdrawn without ever having a consent that took effect. An opt-in that arrives after a
    newer opt-out does not take effect. If the person was erased, no consent is known."""
    if number_verdict.subscription is None:
        return False
    state = number_verdict.subscription.state
    return state.status is Status.UNSUBSCRIBED and (state.is_erased or state.consented_at is None)


@dataclass(frozen=True, slots=True)
class _HistoryLoader:
    """Loads what the conditions need of the sales, texts and campaigns of customers."""

    tx: Tx
    organization_id: UUID
    ids: Collection[UUID]
    zone: tzinfo

    async def find_sales(self, needs: Collection[Needs], sales_max: int | None) -> dict[UUID, list[CustomerSale]]:
        first_days = [it.sales_since for it in needs if it.sales_since is not None]
        if not first_days or not self.ids:
            return {}
        rows = await queries.find_sales(
            self.tx,
            self.organization_id,
            self.ids,
            since=_start_of(min(first_days)),
            with_lines=any(it.with_lines for it in needs),
            limit=sales_max,
        )
        sales_by_customer: dict[UUID, list[CustomerSale]] = {}
        for profile_id, sale_id, external_id, sale_type, occurred_at, *other_fields, lines in rows:
            day = day_of(occurred_at, self.zone)
            fields = (sale_id, external_id, sale_type, day, occurred_at, *other_fields, lines_of(lines))
            sales_by_customer.setdefault(profile_id, []).append(CustomerSale._make(fields))
        return sales_by_customer

    async def find_texts(self, needs: Collection[Needs]) -> dict[UUID, list[Text]]:
        first_days = [it.texts_since for it in needs if it.texts_since is not None]
        since = _start_of(min(first_days)) if first_days and self.ids else None
        if since is None:
            return {}
        texts_by_customer: dict[UUID, list[Text]] = {}
        rows = await queries.find_texts(self.tx, self.organization_id, self.ids, since=since)
        for profile_id, sent_at, journey_id in rows:
            texts_by_customer.setdefault(profile_id, []).append(Text(day_of(sent_at, self.zone), journey_id))
        return texts_by_customer

    async def find_campaigns(self, references: Collection[str]) -> dict[UUID, dict[UUID, date]]:
        """The day on which each customer received each of these campaigns."""
        campaigns = CAMPAIGN.decode_all(references)
        days_by_customer: dict[UUID, dict[UUID, date]] = {}
        if campaigns and self.ids:
            rows = await queries.find_received(self.tx, self.organization_id, self.ids, campaigns)
            for profile_id, campaign_id, sent_at in rows:
                days_by_customer.setdefault(profile_id, {})[campaign_id] = day_of(sent_at, self.zone)
        return days_by_customer


def _start_of(day: date) -> datetime | None:
    """A time before the day begins in every time zone; None means no lower bound."""
    return None if day <= date.min + ZONE_OFFSET_MAX else datetime.combine(day, time(), UTC) - ZONE_OFFSET_MAX


def lines_of(items: Iterable[Mapping[str, Any]] | None) -> tuple[SaleLine, ...]:
    return tuple(_line(item) for item in items or ())


def _line(item: Mapping[str, Any]) -> SaleLine:
    product = item.get("product")
    return SaleLine(
        product_id=None if product is None else product.get("external_id"),
        properties=None if product is None else product.get("properties") or {},
        cents=item["total_price_cents"],
        millionths=millionths(item["quantity"]),
    )
