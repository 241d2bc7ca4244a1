"""Ask for a count, and act on the one of a proposed type."""

from collections.abc import Sequence
from uuid import UUID

from regulars.catalog import retype
from regulars.catalog.counts import queries
from regulars.catalog.counts.model import START, Count, State
from regulars.catalog.model import AttributeType, Catalog, CatalogEntry
from regulars.kit.db import Tx
from regulars.kit.ids import new_uuid

QUEUE = "catalog.counts"


async def count_every_key(tx: Tx, organization_id: UUID, catalog: Catalog) -> Count:
    """Count the values of all keys, each by its declared type; one that runs already is the one."""
    for count in await queries.list_overviews(tx, organization_id, catalog):
        if count.state is State.RUNNING:
            return count
        if count.state is State.FAILED:
            await drop(tx, organization_id, [count.id])
    return await _start(tx, organization_id, catalog)


async def preview_type(
    tx: Tx,
    organization_id: UUID,
    catalog: Catalog,
    key: str,
    *,
    declared: AttributeType,
    allowed_values: Sequence[str] = (),
) -> Count:
    """Count the values of a key by a type that is proposed for it; earlier proposals for the key are dropped."""
    values = tuple(retype.closed_list(declared, allowed_values))
    await drop(tx, organization_id, await queries.list_previews(tx, organization_id, catalog, key))
    return await _start(tx, organization_id, catalog, key=key, declared=declared, allowed_values=values)


async def confirm(tx: Tx, organization_id: UUID, preview: Count) -> CatalogEntry | None:
    """Give the key the type that was counted; None if the count is not one of a key, or not finished.

    The list then shows what the preview counted, until all keys are counted again.
    """
    if preview.key is None or preview.type is None or preview.state is not State.DONE:
        return None
    change = retype.retype_attribute if preview.catalog is Catalog.ATTRIBUTES else retype.retype_product_property
    entry = await change(tx, organization_id, preview.key, declared=preview.type, allowed_values=preview.allowed_values)
    tallies = await queries.find_tallies(tx, organization_id, preview.id)
    for tally in tallies.values():
        tally.samples = {}
        tally.common = {}
    for overview in await queries.list_overviews(tx, organization_id, preview.catalog):
        if overview.state is State.DONE:
            await queries.upsert_tallies(tx, organization_id, overview.id, tallies)
    await drop(tx, organization_id, [preview.id])
    return entry


async def drop(tx: Tx, organization_id: UUID, count_ids: Sequence[UUID]) -> None:
    await queries.delete_tallies(tx, organization_id, count_ids)
    await queries.delete_counts(tx, organization_id, count_ids)


async def forget_values(tx: Tx, organization_id: UUID) -> None:
    """A person is erased: samples may hold what was stored about them, so all of them go; the numbers stay."""
    await queries.blank_values(tx, organization_id)


async def _start(
    tx: Tx,
    organization_id: UUID,
    catalog: Catalog,
    *,
    key: str | None = None,
    declared: AttributeType | None = None,
    allowed_values: tuple[str, ...] = (),
) -> Count:
    count = Count(
        id=new_uuid(),
        catalog=catalog,
        key=key,
        type=declared,
        allowed_values=allowed_values,
        walked_to=START,
        rows_read=0,
        rows_total=None,
        created_at=tx.now,
        finished_at=None,
        attempts=0,
        due_at=tx.now,
    )
    await queries.insert_count(tx, organization_id, count)
    tx.touched.add((QUEUE, organization_id))
    return count
