"""Loads the recorded sales and consents of customers, so that a backtest knows their data at any past time."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Final
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.conditions.customers import Customer, CustomerConsent
from regulars.consent.history import NumberHistory, load_histories
from regulars.consent.model import Outcome, opt_in_automation
from regulars.consent.numbers import TextNumber
from regulars.journeys.backtest import queries
from regulars.journeys.model import PersonRow, SaleTimes
from regulars.journeys.runs.enter import EntryEvent, entry_of_consent
from regulars.journeys.snapshot import find_people
from regulars.kit.db import Tx

# How many sales of a customer are loaded, the newest first.
SALES_MAX: Final = 1_000


@dataclass(slots=True)
class CustomerHistory:
    # The simulated run sets attributes of this row.
    person: PersonRow
    # In the order in which the sales were recorded.
    sales: list[SaleTimes]
    numbers: list[NumberHistory]
    # When simulated texts were sent, by number hash; they count against the number's frequency caps.
    texted: dict[bytes, list[datetime]] = field(default_factory=dict)

    def number_at(self, at: datetime) -> TextNumber | None:
        """The number with the latest consent, of the numbers that had consent at that time."""
        consented = [
            (consented_at, number.number_hash, number.phone_number)
            for number in self.numbers
            if number.phone_number is not None and (consented_at := number.consented_at(at)) is not None
        ]
        if not consented:
            return None
        _, number_hash, phone_number = max(consented)
        return TextNumber(phone_number, number_hash)

    def may_text(self, number_hash: bytes, at: datetime) -> bool:
        return any(it.number_hash == number_hash and it.consented_at(at) is not None for it in self.numbers)

    def customer_at(self, at: datetime, current: Customer, zone: tzinfo) -> Customer:
        """The customer with the sales, texts and consents recorded by that time; all other values are current."""
        day = day_of(at, zone)
        return replace(
            current,
            consent=self._consent_at(at, current.consent),
            sales=tuple(sale for sale in current.sales if sale.recorded_at <= at),
            texts=tuple(text for text in current.texts if text.day <= day),
            campaigns={it: received for it, received in current.campaigns.items() if received <= day},
        )

    def _consent_at(self, at: datetime, current: CustomerConsent) -> CustomerConsent:
        """The consent state at that time. A current *do not contact* applies to the past too."""
        may_be_texted = self.number_at(at) is not None
        if current.state == "do_not_contact" or (current.state == "may_be_texted") is may_be_texted:
            return current
        if may_be_texted:
            return CustomerConsent("may_be_texted")
        withdrawn = any(
            entry.outcome == Outcome.UNSUBSCRIBED and entry.received_at <= at
            for it in self.numbers
            for entry in it.entries
        )
        return CustomerConsent("withdrawn" if withdrawn else "never_asked")

    def recorded_by(self, at: datetime, *, except_id: UUID | None) -> list[SaleTimes]:
        """The sales recorded by that time, except the sale `except_id`."""
        return [it for it in self.sales if it.created_at <= at and it.id != except_id]

    def first_withdrawal(self, *, after: datetime) -> datetime | None:
        withdrawals = (
            entry.received_at
            for it in self.numbers
            for entry in it.entries
            if entry.outcome == Outcome.UNSUBSCRIBED and entry.received_at > after
        )
        return min(withdrawals, default=None)

    def consents(self) -> Iterator[EntryEvent]:
        """The consents that subscribed the customer and were recorded within seven days, so that they start runs."""
        for number in self.numbers:
            for entry in number.entries:
                consented_at = entry.claimed_at or entry.effective_at
                outcome = Outcome(entry.outcome)
                if opt_in_automation(outcome, consented_at=consented_at, now=entry.received_at) == "eligible":
                    yield entry_of_consent(number.subscription_id, entry.sequence, self.person.id, entry.received_at)


async def load_customer_histories(
    tx: Tx, organization_id: UUID, profile_ids: Collection[UUID], *, since: datetime
) -> list[CustomerHistory]:
    """The histories of customers; erased customers are absent."""
    if not profile_ids:
        return []
    people = await find_people(tx, organization_id, profile_ids)
    numbers = await load_histories(tx, organization_id, profile_ids)
    sales: dict[UUID, list[SaleTimes]] = {}
    rows = await queries.find_past_sales(tx, organization_id, sorted(profile_ids), since=since, limit=SALES_MAX)
    for profile_id, sale in sorted(rows, key=lambda it: (it[1].created_at, it[1].id)):
        sales.setdefault(profile_id, []).append(sale)
    return [
        CustomerHistory(
            person._replace(attributes=dict(person.attributes)), sales.get(person.id, []), numbers.get(person.id, [])
        )
        for person in people
    ]
