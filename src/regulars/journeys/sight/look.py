"""Look up everything that a group of decisions needs, with a few statements for all of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from regulars.journeys.check import find_unjudgeable
from regulars.journeys.condition_check import Known
from regulars.journeys.conditions import Seen, SeenSale, SeenSegment
from regulars.journeys.definition import Definition
from regulars.journeys.known import load_known
from regulars.journeys.needs import needs_of
from regulars.journeys.sight import queries
from regulars.journeys.sight.model import PersonRow, RecordedRow, SaleRow
from regulars.kit.db import Tx
from regulars.kit.ids import STORE
from regulars.segments.explain import Memberships, find_memberships


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a decision is about, and by which sale they came in."""

    profile_id: UUID
    sale_id: UUID | None
    definition: Definition


@dataclass(frozen=True, slots=True)
class Sight:
    people: dict[UUID, PersonRow]
    sales: dict[UUID, SaleRow]
    known: Known
    counts: dict[tuple[UUID, UUID | None, int], int]
    zone: str
    memberships: Memberships
    # By definition, judged once for all its customers.
    _unjudgeable: dict[Definition, dict[str, str]] = field(default_factory=dict)

    def seen(self, subject: Subject, now: datetime) -> Seen | None:
        """None: the customer is gone."""
        person = self.people.get(subject.profile_id)
        if person is None:
            return None
        sale = self.sales.get(subject.sale_id) if subject.sale_id is not None else None
        needs = needs_of(subject.definition)
        return Seen(
            now=now,
            zone=self.zone,
            sale=None if sale is None else seen_sale(sale),
            attributes=person.attributes,
            attribute_types=self.known.attributes,
            property_types=self.known.properties,
            is_subscribed=person.is_subscribed,
            purchases={days: self.counts.get((subject.profile_id, subject.sale_id, days), 0) for days in needs.windows},
            segments=seen_segments(self.memberships, subject.profile_id, needs.segments),
            unjudgeable=self.unjudgeable(subject.definition),
        )

    def unjudgeable(self, definition: Definition) -> dict[str, str]:
        """Why its filter or a branch cannot be judged now, by place."""
        found = self._unjudgeable.get(definition)
        if found is None:
            found = self._unjudgeable[definition] = find_unjudgeable(definition, self.known)
        return found


async def look(tx: Tx, organization_id: UUID, subjects: Sequence[Subject]) -> Sight:
    sale_ids = {subject.sale_id for subject in subjects if subject.sale_id is not None}
    sales = await queries.find_sales(tx, organization_id, sale_ids) if sale_ids else []
    people = await queries.find_people(tx, organization_id, {subject.profile_id for subject in subjects})
    asked = [
        (subject.profile_id, subject.sale_id, days)
        for subject in subjects
        for days in needs_of(subject.definition).windows
    ]
    counted = (
        await queries.count_purchases(
            tx, organization_id, [(it, sale, tx.now - timedelta(days=days)) for it, sale, days in asked]
        )
        if asked
        else []
    )
    definitions = {subject.definition for subject in subjects}
    wanted = {segment_id for definition in definitions for segment_id in needs_of(definition).segments}
    memberships = await find_memberships(tx, organization_id, wanted, {subject.profile_id for subject in subjects})
    return Sight(
        people={person.id: person for person in people},
        sales={sale.id: sale for sale in sales},
        known=await load_known(tx, organization_id, definitions, segments=memberships.others),
        counts=dict(zip(asked, counted, strict=True)),
        zone=await queries.find_time_zone(tx, organization_id),
        memberships=memberships,
    )


def seen_segments(
    memberships: Memberships, profile_id: UUID, ids: Collection[str], *, attributes: Mapping[str, str] | None = None
) -> dict[str, SeenSegment]:
    """Those that exist; with attributes, as if the customer had these."""
    return {
        segment_id: SeenSegment(version=other.version, is_in=memberships.is_in(profile_id, segment_id, attributes))
        for segment_id in ids
        if (other := memberships.others.get(segment_id)) is not None
    }


async def find_people(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[PersonRow]:
    return await queries.find_people(tx, organization_id, ids) if ids else []


async def recorded_since(
    tx: Tx, organization_id: UUID, asked: Sequence[tuple[UUID, UUID | None, datetime]]
) -> list[list[RecordedRow]]:
    return await queries.find_recorded_since(tx, organization_id, asked) if asked else []


async def organization_zone(tx: Tx, organization_id: UUID) -> str:
    return await queries.find_time_zone(tx, organization_id)


async def find_sales(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> list[SaleRow]:
    return await queries.find_sales(tx, organization_id, ids) if ids else []


def seen_sale(sale: SaleRow) -> SeenSale:
    return SeenSale(
        store_id=STORE.encode(sale.store_id),
        store_external_id=sale.store_external_id,
        amount_cents=sale.amount_cents,
        currency=sale.currency,
        lines=tuple(sale.line_items or ()),
    )
