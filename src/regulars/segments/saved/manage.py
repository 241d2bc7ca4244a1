"""Creates, changes, deletes and lists segments."""

import unicodedata
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.catalog.entries import PRODUCT_KEY_BYTES_MAX
from regulars.catalog.model import Catalog
from regulars.columns import column_rows as columns
from regulars.columns import lifecycle
from regulars.conditions.check import Fault, blocking_faults
from regulars.conditions.documents import DefinitionRefused
from regulars.conditions.faults import find_empty_texts
from regulars.conditions.tree import attributes_of, properties_of, segments_of
from regulars.kit.db import Database, Tx
from regulars.kit.etag import require_etag
from regulars.kit.ids import SEGMENT, new_uuid
from regulars.kit.refusals import NotFound, NotPossible
from regulars.segments.definition import CHAIN_MAX, Definition, read_stored_definition, write_definition
from regulars.segments.saved import queries
from regulars.segments.saved.model import Segment, SegmentRow, SegmentVersionRow
from regulars.segments.saved.resolve import resolve

SEGMENTS_MAX: Final = 500
# Segments may use segments: the kind under which their uses are stored, beside those of journeys and campaigns.
KIND: Final = "segment"


async def create_segment(
    tx: Tx, organization_id: UUID, definition: Definition, *, created_by: str | None = None
) -> Segment:
    """Save version 1; raise `DefinitionRefused` with all faults if the definition cannot be saved."""
    await queries.lock_segments(tx, organization_id)
    if await queries.count_segments(tx, organization_id) >= SEGMENTS_MAX:
        raise DefinitionRefused([Fault("", f"An organization has at most {SEGMENTS_MAX} segments; delete some.")])
    segment_id = new_uuid()
    await queries.insert_segment(tx, organization_id, segment_id, definition.name)
    row = SegmentRow(segment_id, definition.name, 0, tx.now, tx.now)
    await lifecycle.begin(tx, organization_id)
    return await _save_version(tx, organization_id, row, definition, created_by=created_by)


async def update_segment(
    tx: Tx,
    organization_id: UUID,
    segment_id: UUID,
    definition: Definition,
    *,
    created_by: str | None = None,
    etag: str | None = None,
) -> Segment:
    """Save a new version, which applies at once everywhere the segment is used. `etag` identifies the version that the
    user edited."""
    await queries.lock_segments(tx, organization_id)
    row = await _find_segment(tx, organization_id, segment_id)
    require_etag(row.version, etag)
    return await _save_version(tx, organization_id, row, definition, created_by=created_by)


async def delete_segment(tx: Tx, organization_id: UUID, segment_id: UUID) -> SegmentRow:
    """Delete a segment with its versions; refused while it is in use."""
    await queries.lock_segments(tx, organization_id)
    row = await _find_segment(tx, organization_id, segment_id)
    uses = await queries.find_uses(tx, organization_id, [segment_id])
    if uses:
        kinds = sorted({use.kind for use in uses})
        raise NotPossible(f"It is used by {len(uses)} of these: {', '.join(kinds)}. Take it out there first.")
    await queries.delete_uses(tx, organization_id, kind=KIND, used_by_id=segment_id)
    await queries.delete_keys(tx, organization_id, segment_id)
    await queries.delete_versions(tx, organization_id, segment_id)
    # Delete the segment before its sizes, since a transaction that stores a size locks the segment first too.
    await queries.delete_segment(tx, organization_id, segment_id)
    await queries.delete_sizes(tx, organization_id, segment_id)
    if not await queries.count_segments(tx, organization_id):
        await lifecycle.end(tx, organization_id)
    return row


async def load_segment(tx: Tx, organization_id: UUID, segment_id: UUID, *, version: int | None = None) -> Segment:
    row = await _find_segment(tx, organization_id, segment_id)
    saved = await queries.find_version(tx, organization_id, segment_id, version or row.version)
    if saved is None:
        raise NotFound("The segment has no such version.")
    definition, damage = read_stored_definition(saved.definition)
    resolved = await resolve(tx, organization_id, definition.match, damage=damage)
    return Segment(row, saved, definition, list(resolved.faults), tuple(damage))


async def list_segments(tx: Tx, organization_id: UUID) -> list[SegmentRow]:
    """The most recently changed segment first."""
    return await tx.fetch_all(
        SegmentRow,
        "SELECT {columns} FROM segments WHERE organization_id = %s ORDER BY updated_at DESC, id DESC LIMIT %s",
        (organization_id, SEGMENTS_MAX),
    )


async def list_choices(tx: Tx, organization_id: UUID) -> list[tuple[str, str]]:
    """The ids and names of the segments that a campaign or a condition may use."""
    return [(SEGMENT.encode(row.id), row.name) for row in await list_segments(tx, organization_id)]


async def find_changers(
    tx: Tx, organization_id: UUID, known: Mapping[UUID, int | None], *, since: datetime
) -> list[str]:
    """Who saved a version of these segments after the known one, or after `since` where none is known."""
    return await queries.find_changers(tx, organization_id, known, since=since)


async def find_names(tx: Tx, organization_id: UUID, ids: Collection[UUID]) -> dict[UUID, str]:
    if not ids:
        return {}
    return await tx.fetch_map(
        "SELECT id, name FROM segments WHERE organization_id = %s AND id = ANY (%s::uuid[])",
        (organization_id, list(ids)),
    )


async def find_faults_of_draft(
    tx: Tx, organization_id: UUID, definition: Definition, *, segment_id: UUID | None = None
) -> list[Fault]:
    """Find the faults of a definition that may become the next version of a segment."""
    resolved = await resolve(tx, organization_id, definition.match)
    chain_faults = await _find_faults_of_chain(tx, organization_id, segment_id, definition)
    faults = [*faults_of_name(definition.name), *chain_faults, *resolved.faults]
    places = {fault.place for fault in faults}
    return faults + [fault for fault in find_empty_texts(definition.match) if fault.place not in places]


async def _save_version(
    tx: Tx, organization_id: UUID, row: SegmentRow, definition: Definition, *, created_by: str | None
) -> Segment:
    faults = await find_faults_of_draft(tx, organization_id, definition, segment_id=row.id)
    if blocking := blocking_faults(faults):
        raise DefinitionRefused(blocking)
    saved = row._replace(name=definition.name, version=row.version + 1, updated_at=tx.now)
    text = write_definition(definition).decode()
    await queries.insert_version(
        tx, organization_id, row.id, version=saved.version, definition=text, created_by=created_by
    )
    await queries.update_segment(tx, organization_id, saved)
    await queries.delete_uses(tx, organization_id, kind=KIND, used_by_id=row.id)
    used_ids = SEGMENT.decode_all(segments_of(definition.match))
    await queries.insert_uses(tx, organization_id, used_ids, kind=KIND, used_by_id=row.id)
    await _store_keys(tx, organization_id, row.id, definition)
    return Segment(saved, SegmentVersionRow(saved.version, text, tx.now, created_by), definition, faults)


async def _store_keys(tx: Tx, organization_id: UUID, segment_id: UUID, definition: Definition) -> None:
    """Store which attributes and product properties the conditions read."""
    keys = [(Catalog.ATTRIBUTES.value, key) for key in sorted(attributes_of(definition.match))]
    keys += [(Catalog.PRODUCTS.value, key) for key in sorted(properties_of(definition.match))]
    await queries.delete_keys(tx, organization_id, segment_id)
    # The table cannot store longer keys or U+0000; no catalog has such a key.
    if storable := [key for key in keys if "\0" not in key[1] and len(key[1].encode()) <= PRODUCT_KEY_BYTES_MAX]:
        await queries.insert_keys(tx, organization_id, segment_id, storable)


async def _find_faults_of_chain(
    tx: Tx, organization_id: UUID, segment_id: UUID | None, definition: Definition
) -> list[Fault]:
    """Find references that lead back to the segment, or a chain that is too long. A caller that saves holds the lock.

    Only new references are checked, so that a segment in a chain older than the limit can still be changed.
    """
    saved_ids = [] if segment_id is None else [segment_id]
    # First follow the new references of the definition, then go back to the segments that refer to this segment.
    referenced = set(SEGMENT.decode_all(segments_of(definition.match)))
    referenced.difference_update(await queries.find_used_by(tx, organization_id, kind=KIND, used_by_ids=saved_ids))
    if not referenced:
        return []
    length = 1
    while referenced and length <= CHAIN_MAX:
        if segment_id in referenced:
            return [Fault("match", "The segment would refer to itself, through another segment.")]
        length += 1
        referenced = set(await queries.find_used_by(tx, organization_id, kind=KIND, used_by_ids=referenced))
    referring = saved_ids
    while referring and length <= CHAIN_MAX:
        uses = await queries.find_uses(tx, organization_id, referring)
        referring = list({use.id for use in uses if use.kind == KIND})
        length += bool(referring)
    if length <= CHAIN_MAX:
        return []
    return [
        Fault(
            "match", f"At most {CHAIN_MAX} segments may refer to one another in a chain; refer to fewer, or to others."
        )
    ]


def faults_of_name(name: str) -> list[Fault]:
    faults = [] if name.strip() else [Fault("name", "A segment needs a name.")]
    if any(unicodedata.category(character) == "Cc" for character in name):
        faults.append(Fault("name", "A name has no control characters."))
    return faults


async def _find_segment(tx: Tx, organization_id: UUID, segment_id: UUID) -> SegmentRow:
    row = await queries.find_segment(tx, organization_id, segment_id)
    if row is None:
        raise NotFound("No segment of this organization has this id; it may have been deleted.")
    return row


# A user has this long after the start of the build to save the first segment.
UNNEEDED_AFTER: Final = timedelta(days=1)


async def delete_unneeded_columns(database: Database, organization_id: UUID) -> None:
    """Delete columns (the columnar copy of customers and sales) that were built for a draft which was never saved: they
    cost space, and work on every write. The build began at `fenced_at`.

    Once a segment is saved, the deletion of the last segment deletes the columns.
    """
    async with database.transaction() as tx:
        await queries.lock_segments(tx, organization_id)
        if not await columns.try_lock_state(tx, organization_id):
            # Another transaction writes the columns and holds the lock; the next run checks again.
            return
        state = await columns.find_state(tx, organization_id)
        if state is None or state.fenced_at is None or state.fenced_at > tx.now - UNNEEDED_AFTER:
            return
        if not await queries.count_segments(tx, organization_id):
            await lifecycle.end(tx, organization_id)
