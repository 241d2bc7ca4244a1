"""Look up everything that a group of decisions needs, with a few statements for all of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from regulars.catalog.find import find_types
from regulars.catalog.model import Catalog
from regulars.journeys.check import segments_of
from regulars.journeys.conditions import Seen, SeenSale, SeenSegment, Types, parts
from regulars.journeys.definition import Branch, Condition, Definition, OfAttribute, OfProduct, Purchases
from regulars.journeys.program import walk
from regulars.journeys.sight import queries
from regulars.journeys.sight.model import PersonRow, RecordedRow, SaleRow
from regulars.kit.db import Tx
from regulars.kit.ids import STORE
from regulars.segments.explain.why import Memberships, find_memberships


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
    attribute_types: Types
    property_types: Types
    counts: dict[tuple[UUID, UUID | None, int], int]
    zone: str
    memberships: Memberships

    def seen(self, subject: Subject, now: datetime) -> Seen | None:
        """None: the customer is gone."""
        person = self.people.get(subject.profile_id)
        if person is None:
            return None
        sale = self.sales.get(subject.sale_id) if subject.sale_id is not None else None
        windows = windows_of(conditions_of(subject.definition))
        return Seen(
            now=now,
            zone=self.zone,
            sale=None if sale is None else seen_sale(sale),
            attributes=person.attributes,
            attribute_types=self.attribute_types,
            property_types=self.property_types,
            is_subscribed=person.is_subscribed,
            purchases={days: self.counts.get((subject.profile_id, subject.sale_id, days), 0) for days in windows},
            segments=seen_segments(self.memberships, subject.profile_id, segments_of(subject.definition)),
        )


async def look(tx: Tx, organization_id: UUID, subjects: Sequence[Subject]) -> Sight:
    sale_ids = {subject.sale_id for subject in subjects if subject.sale_id is not None}
    sales = await queries.find_sales(tx, organization_id, sale_ids) if sale_ids else []
    people = await queries.find_people(tx, organization_id, {subject.profile_id for subject in subjects})
    asked = [
        (subject.profile_id, subject.sale_id, days)
        for subject in subjects
        for days in windows_of(conditions_of(subject.definition))
    ]
    counted = (
        await queries.count_purchases(
            tx, organization_id, [(it, sale, tx.now - timedelta(days=days)) for it, sale, days in asked]
        )
        if asked
        else []
    )
    attribute_types, property_types = await find_declared(
        tx, organization_id, [part for subject in subjects for part in conditions_of(subject.definition)]
    )
    return Sight(
        people={person.id: person for person in people},
        sales={sale.id: sale for sale in sales},
        attribute_types=attribute_types,
        property_types=property_types,
        counts=dict(zip(asked, counted, strict=True)),
        zone=await queries.find_time_zone(tx, organization_id),
        memberships=await find_segments(tx, organization_id, subjects),
    )


async def find_declared(tx: Tx, organization_id: UUID, conditions: Collection[Condition]) -> tuple[Types, Types]:
    """The declared types of the attributes, and of the properties of products, that conditions name."""
    attributes = {part.key for part in conditions if isinstance(part, OfAttribute)}
    properties = {part.property for part in conditions if isinstance(part, OfProduct) and part.property is not None}
    return (
        await find_types(tx, organization_id, Catalog.ATTRIBUTES, attributes),
        await find_types(tx, organization_id, Catalog.PRODUCTS, properties),
    )


async def find_segments(tx: Tx, organization_id: UUID, subjects: Collection[Subject]) -> Memberships:
    """Which of the segments that definitions name the customers are in, by the versions of this moment."""
    wanted = {segment_id for subject in subjects for segment_id in segments_of(subject.definition)}
    return await find_memberships(tx, organization_id, wanted, {subject.profile_id for subject in subjects})


def seen_segments(memberships: Memberships, profile_id: UUID, ids: Collection[str]) -> dict[str, SeenSegment]:
    """Those that exist."""
    return {
        segment_id: SeenSegment(
            version=other.version, is_in=memberships.is_in(profile_id, segment_id), is_sound=not other.faults
        )
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


def conditions_of(definition: Definition) -> Iterable[Condition]:
    yield from parts(definition.filter)
    for _, step in walk(definition.steps):
        if isinstance(step, Branch):
            yield from parts(step.condition)


def windows_of(conditions: Iterable[Condition]) -> set[int]:
    return {part.in_days for part in conditions if isinstance(part, Purchases)}


def seen_sale(sale: SaleRow) -> SeenSale:
    return SeenSale(
        store_id=STORE.encode(sale.store_id),
        store_external_id=sale.store_external_id,
        amount_cents=sale.amount_cents,
        currency=sale.currency,
        lines=tuple(sale.line_items or ()),
    )
