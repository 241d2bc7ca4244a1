"""Look up everything that a group of decisions needs, with a few statements for all of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final
from uuid import UUID

from regulars.catalog.model import day_of
from regulars.conditions.check import Known
from regulars.conditions.customers import Customer, Standing, Ticket
from regulars.conditions.evaluation import Evaluator
from regulars.conditions.loading import lines_of, load_customers
from regulars.conditions.tree import Condition
from regulars.journeys.check import find_unjudgeable
from regulars.journeys.conditions import Seen
from regulars.journeys.definition import Definition
from regulars.journeys.needs import needs_of
from regulars.journeys.sight import queries
from regulars.journeys.sight.model import PersonRow, RecordedRow, SaleRow
from regulars.kit.db import Tx
from regulars.segments.kept.resolve import load_known as load_known_conditions

# One card may be shared by all customers at the till: of each customer the sales that were recorded last count.
SALES_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a decision is about, and by which sale they came in."""

    profile_id: UUID
    sale_id: UUID | None
    definition: Definition


@dataclass(frozen=True, slots=True)
class Sight:
    people: Mapping[UUID, PersonRow]
    sales: Mapping[UUID, SaleRow]
    customers: Mapping[UUID, Customer]
    evaluator: Evaluator
    # By definition, judged once for all its customers.
    _unjudgeable: dict[Definition, dict[str, str]] = field(default_factory=dict)

    def seen(self, subject: Subject, now: datetime) -> Seen | None:
        """None: the customer is gone."""
        person = self.people.get(subject.profile_id)
        if person is None:
            return None
        customer = self.customers.get(person.id) or unasked_customer(person)
        return Seen(
            now=now,
            evaluator=self.evaluator,
            customer=customer,
            current=customer,
            today=day_of(now, self.evaluator.known.zone),
            ticket=None if subject.sale_id is None else ticket_of(self.sales.get(subject.sale_id)),
            is_subscribed=person.is_subscribed,
            unjudgeable=self.unjudgeable(subject.definition),
        )

    def unjudgeable(self, definition: Definition) -> dict[str, str]:
        """Why its filter or a branch cannot be judged now, by place."""
        found = self._unjudgeable.get(definition)
        if found is None:
            found = self._unjudgeable[definition] = find_unjudgeable(definition, self.evaluator.known)
        return found


async def look(tx: Tx, organization_id: UUID, subjects: Sequence[Subject]) -> Sight:
    sale_ids = {subject.sale_id for subject in subjects if subject.sale_id is not None}
    sales = await queries.find_sales(tx, organization_id, sale_ids) if sale_ids else []
    profile_ids = {subject.profile_id for subject in subjects}
    people = await queries.find_people(tx, organization_id, profile_ids)
    definitions = {subject.definition for subject in subjects}
    known = await load_known(tx, organization_id, definitions)
    today = day_of(tx.now, known.zone)
    return Sight(
        people={person.id: person for person in people},
        sales={sale.id: sale for sale in sales},
        customers=await load_asked_customers(tx, organization_id, definitions, profile_ids, known=known, today=today),
        evaluator=Evaluator(known),
    )


async def load_known(tx: Tx, organization_id: UUID, definitions: Collection[Definition]) -> Known:
    """What the definitions stand on as it is now, the attributes of their texts too."""
    attributes = {key for definition in definitions for key in needs_of(definition).attributes}
    return await load_known_conditions(tx, organization_id, list(_conditions(definitions)), attributes=attributes)


async def load_asked_customers(
    tx: Tx,
    organization_id: UUID,
    definitions: Collection[Definition],
    profile_ids: Collection[UUID],
    *,
    known: Known,
    today: date,
) -> dict[UUID, Customer]:
    """What the conditions ask about; nothing where there are none."""
    conditions = list(_conditions(definitions))
    segments = [segment.match for segment in known.segments.values()]
    if not conditions:
        return {}
    # Who is in a segment is known exactly.
    sales_max = None if segments else SALES_MAX
    return await load_customers(
        tx,
        organization_id,
        [*conditions, *segments],
        profile_ids,
        zone=known.zone,
        today=today,
        sales_max=sales_max,
    )


def _conditions(definitions: Iterable[Definition]) -> Iterable[Condition]:
    return (condition for definition in definitions for _, condition in needs_of(definition).conditions)


def unasked_customer(person: PersonRow) -> Customer:
    """Of whom no condition asks anything."""
    return Customer(
        id=person.id,
        attributes=person.attributes,
        created=date.min,
        is_named=False,
        country=None,
        standing=Standing("never_asked"),
    )


def ticket_of(sale: SaleRow | None) -> Ticket | None:
    if sale is None:
        return None
    return Ticket(sale.id, sale.store_id, sale.amount_cents, sale.currency, lines_of(sale.line_items))


async def find_people(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[PersonRow]:
    return await queries.find_people(tx, organization_id, ids) if ids else []


async def recorded_since(
    tx: Tx, organization_id: UUID, asked: Sequence[tuple[UUID, UUID | None, datetime]]
) -> list[list[RecordedRow]]:
    return await queries.find_recorded_since(tx, organization_id, asked) if asked else []


async def find_sales(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[SaleRow]:
    return await queries.find_sales(tx, organization_id, ids) if ids else []
