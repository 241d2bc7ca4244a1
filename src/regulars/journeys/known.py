"""Look up what conditions stand on: declared types, stores and segments, as they are now."""

from collections.abc import Collection, Mapping
from uuid import UUID

from regulars.catalog.find import find_types
from regulars.catalog.model import Catalog
from regulars.conditions.check import KnownSegment
from regulars.journeys.check import keys_of
from regulars.journeys.condition_check import Known
from regulars.journeys.definition import Definition
from regulars.journeys.needs import needs_of
from regulars.kit.db import Tx
from regulars.kit.ids import STORE, read_reference
from regulars.segments.kept.resolve import find_segments
from regulars.stores.find import find_stores


async def load_known(
    tx: Tx,
    organization_id: UUID,
    definitions: Collection[Definition],
    *,
    segments: Mapping[str, KnownSegment] | None = None,
) -> Known:
    """For several definitions at once; `segments` are those they name, if the caller has looked them up already."""
    keys = [keys_of(definition) for definition in definitions]
    needs = [needs_of(definition) for definition in definitions]
    if segments is None:
        segments = await find_segments(tx, organization_id, {segment for one in needs for segment in one.segments})
    return Known(
        attributes=await find_types(tx, organization_id, Catalog.ATTRIBUTES, {key for one, _ in keys for key in one}),
        properties=await find_types(tx, organization_id, Catalog.PRODUCTS, {key for _, one in keys for key in one}),
        segments={segment_id: it.faults[0].message if it.faults else None for segment_id, it in segments.items()},
        stores=await _find_stores(tx, organization_id, {store for one in needs for store in one.stores}),
    )


async def _find_stores(tx: Tx, organization_id: UUID, wanted: Collection[str]) -> set[str]:
    """Those that exist, as they were named."""
    references = {text: read_reference(STORE, text) for text in wanted}
    found = await find_stores(tx, organization_id, set(references.values())) if references else {}
    return {text for text, reference in references.items() if reference in found}
