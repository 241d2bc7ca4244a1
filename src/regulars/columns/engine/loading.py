"""Loads the columnar data that a request needs: patches, columns of customers, and arrays of sales.

The data is stored in runs, which are immutable chunks. A block has the columns of a range of customers, a patch has the
new states of changed customers, which are not merged into blocks yet, and all other runs have sales. A part is a stored
array of a run; a new run is packed, with all its arrays in one part. An epoch is the number of one build of all runs.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import numpy as np

from regulars.columns.engine import run_rows as queries
from regulars.columns.engine.cache import CachedColumns
from regulars.columns.engine.calendar import Zone
from regulars.columns.engine.coded_values import LoadProgress
from regulars.columns.engine.customer_columns import (
    PROFILE,
    Column,
    apply_states,
    new_column,
    write_block,
)
from regulars.columns.engine.required_columns import RequiredColumns
from regulars.columns.engine.sales_encoding import read_part, stored_part_of, unpack_grouped
from regulars.columns.engine.sales_runs import SalesRun, is_product_part
from regulars.columns.model import IDENTIFIED_SALES, PACKED, Run, unpack_customers, unpack_sales
from regulars.columns.protocol import AnalysisRequest
from regulars.conditions import tree
from regulars.kit.db import Tx

# How much one statement reads; bytes need twice the memory while they are decoded.
BATCH_BYTES: Final = 32 << 20
BATCH_PATCHES: Final = 64
BATCH_BLOCKS: Final = 4

Item = TypeVar("Item")


class RequiredParts(NamedTuple):
    """The names of the customer columns and of the arrays (parts) of sales that a request needs, and the kinds of sales
    runs to read."""

    customers: set[str]
    sales: set[str]
    kinds: tuple[str, ...] = (IDENTIFIED_SALES,)


def required_parts_of(request: AnalysisRequest) -> RequiredParts:
    """Find the parts that a request needs. Counts by consent state always need `alive` (false for erased customers),
    `consent`, and `own`, the hash of the customer's own phone number."""
    required = RequiredParts({"alive", "consent", "own"}, set())
    match, segments = request.query.match, request.query.segments
    referenced = [segments[segment_id] for segment_id in tree.order_referenced_segments(match, segments)]
    for _, condition in chain.from_iterable(tree.walk(group) for group in (match, *referenced) if group is not None):
        if not isinstance(condition, tree.Group):
            columns = RequiredColumns.of(condition, request.query.today)
            required.customers.update(columns.customers)
            required.sales.update(columns.sales)
    _add_response_parts(required, request)
    return required


def _add_response_parts(required: RequiredParts, request: AnalysisRequest) -> None:
    """Add the parts that the response contains, and the parts by which members are sorted."""
    if request.want not in {"figures", "audience", "answer"} or request.limit:
        required.customers.update(PROFILE)
    if request.want in {"audience", "freeze"}:
        required.customers.add("country")
    if request.with_spend:
        required.sales.update({"customer", "kind", "at_s", "amount"})
    match request.order:
        case "created":
            required.customers.add("created")
        case "last_purchase":
            required.sales.update({"customer", "kind", "at_s"})
        case "spend":
            required.sales.update({"customer", "kind", "amount"})


class RunGoneError(Exception):
    """Compaction replaced a run after the snapshot was taken; the caller takes a new snapshot."""


async def load(tx: Tx, organization_id: UUID, cached: CachedColumns, required: RequiredParts, *, zone: Zone) -> None:
    """Load the required parts that the cache lacks, and apply new patches."""
    await load_patches(tx, organization_id, cached)
    cached.apply_patches()
    if cached.do_not_contact_as_of != cached.snapshot.consents:
        hashes = await queries.find_do_not_contact_hashes(tx, organization_id)
        cached.do_not_contact_hashes = np.frombuffer(hashes, ">u8").astype(np.uint64)
        cached.do_not_contact_as_of = cached.snapshot.consents
    columns = sorted(required.customers - cached.columns.keys())
    in_blocks = sum(run.rows for run in cached.runs("block"))
    cached.progress = LoadProgress(total=in_blocks * len(columns) + _count_missing(cached, required, zone))
    for name in columns:
        await _load_column(tx, organization_id, cached, name)
    for name in required.customers:
        cached.columns.move_to_end(name)
    if required.sales:
        await _load_sales(tx, organization_id, cached, required, zone=zone)


def _count_missing(cached: CachedColumns, required: RequiredParts, zone: Zone) -> int:
    """Estimate how many values of sales have to be loaded; a part of lines counts like a part of sales."""
    runs = [cached.sales.get(run.id, SalesRun(run)) for run in cached.runs(*required.kinds)] if required.sales else []
    return sum(run.meta.rows * len(_missing(run, required.sales, zone)) for run in runs)


async def load_patches(tx: Tx, organization_id: UUID, cached: CachedColumns) -> None:
    missing = [run for run in cached.runs("patch") if run.id not in cached.patches]
    for batch in _batches(missing, BATCH_PATCHES):
        blobs = await find_parts(tx, organization_id, cached, batch, [PACKED])
        for run in batch:
            cached.patches[run.id] = unpack_customers(blobs[run.id, PACKED])


async def _load_column(tx: Tx, organization_id: UUID, cached: CachedColumns, name: str) -> None:
    """Load a column of customers; a thread decodes a batch of blocks while the next batch is being read."""
    column = new_column(name, cached.size)
    is_gone = False
    decoding: asyncio.Task[None] | None = None
    async with asyncio.TaskGroup() as tasks:
        for batch in _batches(cached.runs("block"), BATCH_BLOCKS):
            blobs = await queries.find_blobs(
                tx, organization_id, cached.snapshot.epoch, [run.id for run in batch], [name, "alive"]
            )
            is_gone = any((run.id, "alive") not in blobs for run in batch)
            if is_gone:
                break
            if decoding is not None:
                await decoding
            decoding = tasks.create_task(asyncio.to_thread(_write_blocks, cached, name, column, batch, blobs))
    if is_gone:
        raise RunGoneError
    apply_states(name, column, cached.patched_states())
    cached.columns[name] = column


def _write_blocks(
    cached: CachedColumns, name: str, column: Column, blocks: Sequence[Run], blobs: Mapping[tuple[int, str], bytes]
) -> None:
    for run in blocks:
        if (run.id, name) in blobs:
            # The ordinal of a block is its index.
            write_block(column, run.ordinal, blobs[run.id, name])
        cached.progress.done += run.rows


async def _load_sales(
    tx: Tx, organization_id: UUID, cached: CachedColumns, required: RequiredParts, *, zone: Zone
) -> None:
    runs, parts = cached.runs(*required.kinds), required.sales
    for run in runs:
        if run.id not in cached.sales:
            cached.sales[run.id] = SalesRun(run)
    # A run of level 0 was never merged, so it is packed.
    packed = [run for run in runs if run.level == 0 and _missing(cached.sales[run.id], parts, zone)]
    for batch in _batches_by_bytes(packed):
        blobs = await find_parts(tx, organization_id, cached, batch, [PACKED])
        for run in batch:
            cached.progress.done += run.rows * len(_missing(cached.sales[run.id], parts, zone))
            # The arrays of a packed run are small, so all are decoded; but of its products only the parts that requests
            # needed so far.
            product_parts = {part for part in (*parts, *cached.sales[run.id].parts) if is_product_part(part)}
            cached.sales[run.id].parts = unpack_grouped(
                unpack_sales(blobs[run.id, PACKED]), cached.dictionaries, product_parts
            )
    is_gone = False
    try:
        merged = [run for run in runs if run.level > 0]
        await _load_merged(tx, organization_id, cached, merged, parts, zone=zone)
    except* RunGoneError:
        is_gone = True
    if is_gone:
        raise RunGoneError


async def _load_merged(
    tx: Tx, organization_id: UUID, cached: CachedColumns, merged: Sequence[Run], parts: set[str], *, zone: Zone
) -> None:
    async with asyncio.TaskGroup() as decoding:
        for part in sorted(parts):
            incomplete = [run for run in merged if part in _missing(cached.sales[run.id], {part}, zone)]
            for batch in _batches_by_bytes(incomplete):
                blobs = await find_parts(tx, organization_id, cached, batch, [stored_part_of(part)])
                for run in batch:
                    content = blobs.pop((run.id, stored_part_of(part)))
                    decoding.create_task(asyncio.to_thread(_decode, cached, run, part, content, zone))
            cached.parts[part] = None
            cached.parts.move_to_end(part)


def _decode(cached: CachedColumns, run: Run, part: str, content: bytes, zone: Zone) -> None:
    """Decode a part of a run, in a thread, while the next part is being read."""
    sales = cached.sales[run.id]
    sales.parts |= read_part(part, content, cached.dictionaries)
    if part == "at_s":
        sales.days(zone)
    cached.progress.done += run.rows


def _missing(run: SalesRun, parts: set[str], zone: Zone) -> set[str]:
    """Which parts are not loaded. Local days replace the times `at_s` in memory."""
    loaded = {"at_s", *run.parts} if f"day:{zone.name}" in run.parts else set(run.parts)
    return parts - loaded


async def find_parts(
    tx: Tx, organization_id: UUID, cached: CachedColumns, runs: Sequence[Run], parts: Sequence[str]
) -> dict[tuple[int, str], bytes]:
    blobs = await queries.find_blobs(tx, organization_id, cached.snapshot.epoch, [run.id for run in runs], parts)
    if len(blobs) < len(runs) * len(parts):
        raise RunGoneError
    return blobs


def _batches_by_bytes(runs: Sequence[Run]) -> Iterator[list[Run]]:
    batch: list[Run] = []
    for run in runs:
        batch.append(run)
        if sum(batched.bytes for batched in batch) > BATCH_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


def _batches(items: Sequence[Item], step: int) -> Iterator[Sequence[Item]]:
    for first in range(0, len(items), step):
        yield items[first : first + step]
