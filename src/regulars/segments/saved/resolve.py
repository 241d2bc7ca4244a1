"""Resolves a definition: loads the key types, stores and segments that its conditions name, and finds its faults."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from uuid import UUID

from regulars.catalog.entries import find_types
from regulars.catalog.model import AttributeType, Catalog, day_of
from regulars.columns.protocol import SegmentQuery
from regulars.conditions import tree
from regulars.conditions.check import ConditionContext, Fault, ReferencedSegment, Types
from regulars.conditions.faults import find_faults
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT, STORE, read_reference
from regulars.segments.definition import NO_TICKET, read_stored_definition
from regulars.segments.saved import queries
from regulars.stores.find import find_stores


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSegment:
    match: tree.Group
    context: ConditionContext
    now: datetime
    # With any fault the segment has no members.
    faults: tuple[Fault, ...]

    @property
    def today(self) -> date:
        return day_of(self.now, self.context.zone)


async def resolve(tx: Tx, organization_id: UUID, match: tree.Group, *, damage: Sequence[Fault] = ()) -> ResolvedSegment:
    """`damage` are faults of a stored segment, of which `match` has only the valid conditions."""
    context = await load_context(tx, organization_id, [match])
    faults = (*damage, *find_faults(match, context, no_ticket=NO_TICKET))
    return ResolvedSegment(match=match, context=context, now=tx.now, faults=faults)


async def load_context(
    tx: Tx, organization_id: UUID, conditions: Collection[tree.Condition], *, attributes: Collection[str] = ()
) -> ConditionContext:
    """Load the current data that these conditions refer to, and the types of `attributes`."""
    segments = await _find_segments(
        tx, organization_id, {segment_id for condition in conditions for segment_id in tree.segments_of(condition)}
    )
    all_conditions = [*conditions, *(segment.match for segment in segments.values())]
    keys = {*attributes, *(key for condition in all_conditions for key in tree.attributes_of(condition))}
    properties = {key for condition in all_conditions for key in tree.properties_of(condition)}
    context = ConditionContext(
        attributes=await find_types(tx, organization_id, Catalog.ATTRIBUTES, keys),
        properties=await find_types(tx, organization_id, Catalog.PRODUCTS, properties),
        stores=await _find_stores(
            tx, organization_id, {store for condition in all_conditions for store in tree.stores_of(condition)}
        ),
        zone=await queries.load_zone(tx, organization_id),
    )
    return add_faults(replace(context, segments=segments))


async def _find_segments(tx: Tx, organization_id: UUID, segment_ids: Collection[str]) -> dict[str, ReferencedSegment]:
    """Load the segments, and the segments to which they refer, each once, so that the loop ends even with a circular
    reference."""
    segments: dict[str, ReferencedSegment] = {}
    unread = {segment_id for segment_id in segment_ids if SEGMENT.decode(segment_id) is not None}
    while unread:
        ids = SEGMENT.decode_all(unread)
        for identifier, name, version, text in await queries.find_current(tx, organization_id, ids):
            definition, damage = read_stored_definition(text)
            segments[SEGMENT.encode(identifier)] = ReferencedSegment(
                name, version, definition.match, damage=tuple(damage)
            )
        referenced = {inner for found in unread & segments.keys() for inner in tree.segments_of(segments[found].match)}
        unread = {inner for inner in referenced - segments.keys() - unread if SEGMENT.decode(inner) is not None}
    return segments


def add_faults(context: ConditionContext) -> ConditionContext:
    """Check each segment after the segments it refers to, since a reference to a segment with a fault is a fault."""
    all_segments = tree.All(of=tuple(tree.InSegment(id=segment_id) for segment_id in context.segments))
    checked: dict[str, ReferencedSegment] = {}
    matches = {segment_id: segment.match for segment_id, segment in context.segments.items()}
    for segment_id in tree.order_referenced_segments(all_segments, matches):
        segment = context.segments[segment_id]
        faults = find_faults(segment.match, replace(context, segments=checked), no_ticket=NO_TICKET)
        checked[segment_id] = segment._replace(faults=(*segment.damage, *faults))
    return replace(context, segments=checked)


async def _find_stores(tx: Tx, organization_id: UUID, texts: Collection[str]) -> dict[str, UUID]:
    references = {text: read_reference(STORE, text) for text in texts}
    stores = await find_stores(tx, organization_id, set(references.values())) if references else {}
    return {text: stores[reference].id for text, reference in references.items() if reference in stores}


def query_of(resolved: ResolvedSegment, *, is_faulty: bool | None = None) -> SegmentQuery:
    """The query to the analysis process. `is_faulty` replaces the result of the check for faults."""
    return SegmentQuery(
        match=resolved.match,
        attributes=_copy_types(resolved.context.attributes),
        properties=_copy_types(resolved.context.properties),
        stores=dict(resolved.context.stores),
        segments={
            segment_id: None if segment.faults else segment.match
            for segment_id, segment in resolved.context.segments.items()
        },
        zone=resolved.context.zone.key,
        today=resolved.today,
        is_faulty=bool(resolved.faults) if is_faulty is None else is_faulty,
    )


def _copy_types(types: Types) -> dict[str, tuple[AttributeType, tuple[str, ...]]]:
    return {key: (declared, tuple(values)) for key, (declared, values) in types.items()}
