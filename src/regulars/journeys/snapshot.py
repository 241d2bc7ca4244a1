"""Loads the customers, sales and catalogs that a batch of journey decisions needs, with a few statements for all.

Statements find each row by its key through LATERAL, so that PostgreSQL uses the same plan without table statistics.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.conditions.check import ConditionContext
from regulars.conditions.customers import Customer, CustomerConsent, Ticket
from regulars.conditions.evaluation import Evaluator
from regulars.conditions.loading import lines_of, load_customers
from regulars.conditions.tree import Condition
from regulars.journeys.check import find_unevaluable
from regulars.journeys.context import EvaluationContext
from regulars.journeys.definition import Definition
from regulars.journeys.model import PersonRow, SaleRow, SaleTimes
from regulars.journeys.program import references_of
from regulars.kit.db import Tx
from regulars.kit.ids import first_id_at
from regulars.segments.saved.resolve import load_context

# Only the latest sales of a customer are loaded, because some tills use one loyalty card for all anonymous customers.
SALES_MAX: Final = 2_000
# The time in the id of a sale is of a server's clock, `created_at` is of the database's clock.
CLOCK_DIFFERENCE_MAX: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DecisionSubject:
    """The customer a decision is about, the sale that started the run, and the definition."""

    profile_id: UUID
    sale_id: UUID | None
    definition: Definition


@dataclass(frozen=True, slots=True)
class JourneySnapshot:
    """The loaded data. `customers` has the values that conditions need, `people` those that texts need."""

    people: Mapping[UUID, PersonRow]
    sales: Mapping[UUID, SaleRow]
    customers: Mapping[UUID, Customer]
    evaluator: Evaluator
    # Why the conditions of each definition cannot be evaluated; computed once for all customers.
    _unevaluable: dict[Definition, dict[str, str]] = field(default_factory=dict)

    def context_of(self, subject: DecisionSubject, now: datetime) -> EvaluationContext | None:
        """The values on which a decision is made; None if the customer was erased."""
        person = self.people.get(subject.profile_id)
        if person is None:
            return None
        customer = self.customers.get(person.id) or customer_without_conditions(person)
        return EvaluationContext(
            now=now,
            evaluator=self.evaluator,
            customer=customer,
            current=customer,
            today=day_of(now, self.evaluator.context.zone),
            ticket=None if subject.sale_id is None else ticket_of(self.sales.get(subject.sale_id)),
            is_subscribed=person.is_subscribed,
            unevaluable=self.unevaluable(subject.definition),
        )

    def unevaluable(self, definition: Definition) -> dict[str, str]:
        """Why the filter or a branch cannot be evaluated now, by location: `filter`, or the id of the branch."""
        reasons = self._unevaluable.get(definition)
        if reasons is None:
            reasons = self._unevaluable[definition] = find_unevaluable(definition, self.evaluator.context)
        return reasons


async def load_snapshot(tx: Tx, organization_id: UUID, subjects: Sequence[DecisionSubject]) -> JourneySnapshot:
    sale_ids = {subject.sale_id for subject in subjects if subject.sale_id is not None}
    sales = await find_sales(tx, organization_id, sale_ids)
    profile_ids = {subject.profile_id for subject in subjects}
    people = await find_people(tx, organization_id, profile_ids)
    definitions = {subject.definition for subject in subjects}
    context = await load_condition_context(tx, organization_id, definitions)
    today = day_of(tx.now, context.zone)
    return JourneySnapshot(
        people={person.id: person for person in people},
        sales={sale.id: sale for sale in sales},
        customers=await load_condition_customers(
            tx, organization_id, definitions, profile_ids, context=context, today=today
        ),
        evaluator=Evaluator(context),
    )


async def load_condition_context(
    tx: Tx, organization_id: UUID, definitions: Collection[Definition]
) -> ConditionContext:
    """The attributes, segments and other catalogs that the definitions refer to, as they are now."""
    attributes = {key for definition in definitions for key in references_of(definition).attributes}
    return await load_context(tx, organization_id, list(_list_conditions(definitions)), attributes=attributes)


async def load_condition_customers(
    tx: Tx,
    organization_id: UUID,
    definitions: Collection[Definition],
    profile_ids: Collection[UUID],
    *,
    context: ConditionContext,
    today: date,
) -> dict[UUID, Customer]:
    """The customers with the values that the conditions need; empty if there are no conditions."""
    conditions = list(_list_conditions(definitions))
    segments = [segment.match for segment in context.segments.values()]
    if not conditions:
        return {}
    # Segments need all sales, because their members are computed exactly.
    sales_max = None if segments else SALES_MAX
    return await load_customers(
        tx,
        organization_id,
        [*conditions, *segments],
        profile_ids,
        zone=context.zone,
        today=today,
        sales_max=sales_max,
    )


def _list_conditions(definitions: Iterable[Definition]) -> Iterable[Condition]:
    return (condition for definition in definitions for _, condition in references_of(definition).conditions)


def customer_without_conditions(person: PersonRow) -> Customer:
    """A customer with placeholder values, for definitions without conditions, which read only the attributes."""
    return Customer(
        id=person.id,
        attributes=person.attributes,
        created=date.min,
        is_named=False,
        country=None,
        consent=CustomerConsent("never_asked"),
    )


def ticket_of(sale: SaleRow | None) -> Ticket | None:
    if sale is None:
        return None
    return Ticket(sale.id, sale.store_id, sale.amount_cents, sale.currency, lines_of(sale.line_items))


async def find_sales(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[SaleRow]:
    if not ids:
        return []
    return await tx.fetch_all(
        SaleRow,
        """
        SELECT sale.id, sale.type, sale.profile_id, sale.store_id, store.external_id, store.name,
               store.address ->> 'locality', store.address ->> 'country_code', sale.total_amount_cents, sale.currency,
               sale.occurred_at, sale.created_at, sale.line_items
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, type, profile_id, store_id, total_amount_cents, currency, occurred_at, created_at, line_items
            FROM sales_events WHERE organization_id = %(organization_id)s AND id = it.id LIMIT 1
        ) AS sale
        CROSS JOIN LATERAL (
            SELECT external_id, name, address FROM stores
            WHERE organization_id = %(organization_id)s AND id = sale.store_id LIMIT 1
        ) AS store
        """,
        {"organization_id": organization_id, "ids": list(ids)},
    )


async def find_people(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[PersonRow]:
    if not ids:
        return []
    return await tx.fetch_all(
        PersonRow,
        """
        SELECT person.id, person.first_name, person.last_name, person.attributes, EXISTS (
            SELECT 1 FROM subscriptions
            WHERE organization_id = %(organization_id)s AND profile_id = person.id AND status = 'SUBSCRIBED'
        )
        FROM unnest(%(ids)s::uuid[]) AS it (id)
        CROSS JOIN LATERAL (
            SELECT id, first_name, last_name, attributes FROM profiles
            WHERE organization_id = %(organization_id)s AND id = it.id LIMIT 1
        ) AS person
        """,
        {"organization_id": organization_id, "ids": list(ids)},
    )


async def find_sales_since(
    tx: Tx, organization_id: UUID, searches: Sequence[tuple[UUID, UUID | None, datetime]]
) -> list[list[SaleTimes]]:
    """For each search (profile, excluded sale, since): the latest 50 sales recorded since that time.

    An id begins with its time, so the statement reads only the end of the index of a customer's sales. Some customers
    have tens of thousands of sales, because a till uses one loyalty card for all anonymous customers.
    """
    rows = await tx.fetch(
        """
        SELECT it.number, found.id, found.type, found.occurred_at, found.created_at
        FROM unnest(%(profile_ids)s::uuid[], %(sale_ids)s::uuid[], %(sinces)s::timestamptz[], %(first_ids)s::uuid[])
             WITH ORDINALITY AS it (profile_id, sale_id, since, first_id, number)
        CROSS JOIN LATERAL (
            SELECT id, type, occurred_at, created_at FROM sales_events
            WHERE organization_id = %(organization_id)s AND profile_id = it.profile_id AND id >= it.first_id
              AND created_at >= it.since AND id IS DISTINCT FROM it.sale_id
            ORDER BY id DESC
            LIMIT 50
        ) AS found
        """,
        {
            "organization_id": organization_id,
            "profile_ids": [it[0] for it in searches],
            "sale_ids": [it[1] for it in searches],
            "sinces": [it[2] for it in searches],
            "first_ids": [first_id_at(it[2] - CLOCK_DIFFERENCE_MAX) for it in searches],
        },
    )
    sales: list[list[SaleTimes]] = [[] for _ in searches]
    for number, *sale in rows:
        sales[number - 1].append(SaleTimes(*sale))
    return sales


async def list_last_sales(tx: Tx, organization_id: UUID, profile_id: UUID, sale_type: str, *, limit: int) -> list[UUID]:
    return await tx.fetch_column(
        """
        SELECT id FROM sales_events
        WHERE organization_id = %s AND profile_id = %s AND type = %s
        ORDER BY id DESC
        LIMIT %s
        """,
        (organization_id, profile_id, sale_type, limit),
    )
