"""A definition together with everything it stands on: the types of its keys, its stores, the segments it names."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.catalog.find import find_types
from regulars.catalog.model import Catalog, day_of
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT, STORE, read_reference
from regulars.segments.check import Known, Types, find_faults, is_askable, keys_of, segments_of, stores_of
from regulars.segments.definition import All, Definition, Group, InSegment, OfAttribute, OfProperty
from regulars.segments.errors import Fault
from regulars.segments.kept import queries
from regulars.segments.order import innermost_first
from regulars.segments.read import read_definition
from regulars.segments.values import ValueTest
from regulars.stores.find import find_stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A segment that is asked for, as it is now."""

    name: str
    version: int
    definition: Definition
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    match: Group
    attributes: Types
    properties: Types
    stores: Mapping[str, UUID]
    # All that are asked for, also by one another, by the id that stands in the conditions.
    others: Mapping[str, Other]
    zone: ZoneInfo
    now: datetime
    # With any of these nobody is in it.
    faults: tuple[Fault, ...]

    @property
    def today(self) -> date:
        return day_of(self.now, self.zone)

    def test_of(self, asked: OfAttribute | OfProperty) -> ValueTest | None:
        """The comparison, ready to be asked; None where the key is unknown or its type does not offer it."""
        types = self.attributes if isinstance(asked, OfAttribute) else self.properties
        if not is_askable(asked, types):
            return None
        declared, allowed_values = types[asked.key]
        return ValueTest(asked, declared=declared, allowed_values=allowed_values, today=self.today, zone=self.zone)

    @property
    def definitions(self) -> dict[str, Definition]:
        return {segment_id: other.definition for segment_id, other in self.others.items()}


async def resolve(tx: Tx, organization_id: UUID, match: Group) -> Resolved:
    found = await _find_others(tx, organization_id, segments_of(match))
    every = [match, *(definition.match for _, _, definition in found.values())]
    types = await _find_types(tx, organization_id, every)
    stores = await _find_stores(tx, organization_id, {store for one in every for store in stores_of(one)})
    faults: Faults = {}
    inner = {segment_id: definition.match for segment_id, (_, _, definition) in found.items()}
    for segment_id in innermost_first(match, inner):
        faults[segment_id] = tuple(find_faults(inner[segment_id], _known(types, stores, faults)))
    others = {
        segment_id: Other(name=name, version=version, definition=definition, faults=faults[segment_id])
        for segment_id, (name, version, definition) in found.items()
    }
    return Resolved(
        match=match,
        attributes=types[0],
        properties=types[1],
        stores=stores,
        others=others,
        zone=ZoneInfo(await queries.find_zone(tx, organization_id)),
        now=tx.now,
        faults=tuple(find_faults(match, _known(types, stores, faults))),
    )


async def find_others(tx: Tx, organization_id: UUID, segment_ids: Collection[str]) -> dict[str, Other]:
    """The segments of these ids that exist, each with what is wrong with it."""
    if not segment_ids:
        return {}
    resolved = await resolve(tx, organization_id, All(of=tuple(InSegment(id=it) for it in sorted(segment_ids))))
    return {segment_id: resolved.others[segment_id] for segment_id in segment_ids if segment_id in resolved.others}


Found = dict[str, tuple[str, int, Definition]]
Faults = dict[str, tuple[Fault, ...]]


async def _find_others(tx: Tx, organization_id: UUID, wanted: Collection[str]) -> Found:
    """Level by level, each once: what is saved has no circles, and one that had would end here too."""
    found: Found = {}
    missing = {segment_id for segment_id in wanted if SEGMENT.decode(segment_id) is not None}
    while missing:
        ids = [identifier for segment_id in missing if (identifier := SEGMENT.decode(segment_id)) is not None]
        rows = await queries.find_current(tx, organization_id, ids)
        for identifier, name, version, text in rows:
            found[SEGMENT.encode(identifier)] = (name, version, read_definition(text.encode()))
        inner = {it for identifier, *_ in rows for it in segments_of(found[SEGMENT.encode(identifier)][2].match)}
        missing = {it for it in inner - found.keys() - missing if SEGMENT.decode(it) is not None}
    return found


async def _find_types(tx: Tx, organization_id: UUID, every: Collection[Group]) -> tuple[Types, Types]:
    keys = [keys_of(match) for match in every]
    attributes = {key for one, _ in keys for key in one}
    properties = {key for _, one in keys for key in one}
    return (
        await find_types(tx, organization_id, Catalog.ATTRIBUTES, attributes),
        await find_types(tx, organization_id, Catalog.PRODUCTS, properties),
    )


async def _find_stores(tx: Tx, organization_id: UUID, wanted: Collection[str]) -> dict[str, UUID]:
    references = {text: read_reference(STORE, text) for text in wanted}
    found = await find_stores(tx, organization_id, set(references.values())) if references else {}
    return {text: found[reference].id for text, reference in references.items() if reference in found}


def _known(types: tuple[Types, Types], stores: Mapping[str, UUID], faults: Faults) -> Known:
    return Known(
        attributes=types[0],
        properties=types[1],
        stores=stores.keys(),
        segments={segment_id: found[0].message if found else None for segment_id, found in faults.items()},
    )
