"""Compacts the columnar copy of customers and sales: merges its runs, and purges erased customers, whose sales remain.

A run is a stored chunk of rows: a patch has changed customers, a block has a range of customers, and all other runs
have sales. The ordinal of a block is its index; patches are numbered as they are written. Each array of a run is stored
as a part; a new run is packed, with all arrays in one part. An epoch is one build of all runs.

Runs are immutable. So the heavy work happens without a lock on the state: new runs are written as not live (queries
ignore them), while the old runs stay live, and one short transaction replaces the old runs. It checks that all old runs
still exist. If another process replaced them first, the new runs are deleted and nothing is lost. A process that dies
leaves runs that are not live, which the next compaction deletes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np

from regulars.columns import column_rows as columns
from regulars.columns.engine import run_rows as queries
from regulars.columns.engine.customer_columns import last_state_of_each, merge_into_block
from regulars.columns.engine.encoding import Array, decode
from regulars.columns.engine.sales_encoding import (
    PARTS,
    encode_parts,
    merge,
    read_flat,
    read_numbers,
    split_erased,
    unpack,
)
from regulars.columns.engine.sales_runs import Dictionaries
from regulars.columns.model import (
    ANONYMOUS_SALES,
    BLOCK_CUSTOMERS,
    COMPACTION_CLAIM,
    FORMAT,
    IDENTIFIED_SALES,
    PACKED,
    CustomerState,
    Run,
    pack_customers,
    unpack_customers,
    unpack_sales,
)
from regulars.kit.db import Database, Tx

# This many runs of a level are merged into one run of the next level; new runs have the level 0.
MERGE_RUNS: Final = 16
# The largest size of a merged run; a build writes runs of 1/128 of this size.
MERGED_ROWS_MAX: Final = 1 << 21
# Patches are merged into blocks when they have at least this many changes, in total and for each existing block.
MERGE_CHANGES_MIN: Final = 8_192
MERGE_CHANGES_PER_BLOCK_MIN: Final = 2_048
# Data of an erased customer must be deleted within 24 hours; half of that is left for retries.
PURGE_AFTER: Final = timedelta(hours=12)


class NewRun(NamedTuple):
    """A run (chunk of rows) that replaces old runs, and its parts (stored arrays) by name. The id of the run is 0 until
    the run is written."""

    run: Run
    parts: Mapping[str, bytes]


class _ConcurrentChangeError(Exception):
    """Another process replaced the runs that were read."""


async def compact(database: Database, organization_id: UUID, *, purge_after: timedelta = PURGE_AFTER) -> bool:
    """Compact if due; return whether a run changed. A claim prevents other processes from compacting."""
    async with database.transaction() as tx:
        state = await columns.find_state(tx, organization_id)
        if state is None or state.format != FORMAT:
            return False
        if not await columns.claim_compaction(tx, organization_id, until=tx.now + COMPACTION_CLAIM):
            return False
        is_purge_due = state.erased_since is not None and tx.now - state.erased_since >= purge_after
    has_changed = False
    try:
        await _delete_unfinished(database, organization_id, state.epoch)
        is_building = state.state == "building"
        while await _merge_next(database, organization_id, state.epoch, is_building=is_building):
            has_changed = True
        if is_purge_due:
            await _purge(database, organization_id, state.epoch)
            has_changed = True
    except _ConcurrentChangeError:
        has_changed = True
    await _release(database, organization_id, purge_after=purge_after)
    return has_changed


async def _release(database: Database, organization_id: UUID, *, purge_after: timedelta) -> None:
    """Release the claim. The next compaction is due at once if there are runs to merge, or at the next purge."""
    async with database.transaction() as tx:
        state = await columns.lock_state(tx, organization_id)
        if state is None or state.state == "ended":
            return
        purge_at = None if state.erased_since is None else state.erased_since + purge_after
        runs = await columns.list_runs(tx, organization_id, state.epoch)
        # The time of the next compaction.
        state.tidy_at = tx.now if choose_runs(runs, is_building=state.state == "building") else purge_at
        await columns.update_state(tx, organization_id, state)


def choose_runs(runs: Sequence[Run], *, is_building: bool = False) -> list[Run]:
    """Choose the runs to merge next: the oldest sales runs of a level, if they suffice for the next level, or all
    patches.

    The order of sales runs does not matter, so small runs are merged without the large ones. The last patch of a
    customer wins, so all patches are merged together. During a build no query waits, so its runs are merged only when
    there are enough for the largest run, and each sale is merged once.
    """
    sales = [
        run
        for run in runs
        if run.kind in {IDENTIFIED_SALES, ANONYMOUS_SALES} and run.rows <= MERGED_ROWS_MAX // MERGE_RUNS
    ]
    for level, kind in sorted({(run.level, run.kind) for run in sales}):
        of_level = [run for run in sales if (run.level, run.kind) == (level, kind)]
        # How many of the oldest runs fit into one merged run.
        fitting = sum(rows <= MERGED_ROWS_MAX for rows in accumulate(run.rows for run in of_level))
        if fitting >= MERGE_RUNS and (fitting < len(of_level) or not is_building):
            return of_level[:fitting]
    patches = [run for run in runs if run.kind == "patch"]
    return patches if len(patches) >= MERGE_RUNS or should_merge_patches(runs) else []


def should_merge_patches(runs: Sequence[Run]) -> bool:
    """Whether there are enough changes to rewrite every block; fewer changes may touch only a few blocks."""
    changes = sum(run.rows for run in runs if run.kind == "patch")
    return changes >= max(MERGE_CHANGES_MIN, MERGE_CHANGES_PER_BLOCK_MIN * sum(run.kind == "block" for run in runs))


async def _merge_next(database: Database, organization_id: UUID, epoch: int, *, is_building: bool) -> bool:
    async with database.transaction() as tx:
        runs = await columns.list_runs(tx, organization_id, epoch)
        chosen = choose_runs(runs, is_building=is_building)
        is_into_blocks = bool(chosen) and chosen[0].kind == "patch" and should_merge_patches(runs)
        run_ids = [] if is_into_blocks else [run.id for run in chosen]
        blobs = await queries.find_blobs(tx, organization_id, epoch, run_ids, None)
    if not chosen:
        return False
    if is_into_blocks:
        await merge_patches(database, organization_id, epoch)
        return True
    merge_runs = _merge_patch_runs if chosen[0].kind == "patch" else _merge_sales
    new_run = await asyncio.to_thread(merge_runs, chosen, blobs)
    await _replace(database, organization_id, epoch, chosen, [new_run])
    return True


# The content of the parts, by the id of the run and the name of the part.
Blobs = Mapping[tuple[int, str], bytes]


def _merge_sales(runs: Sequence[Run], blobs: Blobs) -> NewRun:
    dictionaries = Dictionaries()
    parts = merge([_decode_run(run, blobs, dictionaries) for run in runs])
    level = max(run.level for run in runs) + 1
    return _encode_run(runs[0].kind, level, max(run.ordinal for run in runs), parts, dictionaries)


def _purge_run(run: Run, blobs: Blobs, erased_customers: Array) -> list[NewRun]:
    """Split a run: one run with the sales of existing customers, and one with the other sales, without a customer."""
    dictionaries = Dictionaries()
    remaining, erased = split_erased(_decode_run(run, blobs, dictionaries), erased_customers)
    # Only packed runs have the level 0.
    return [
        _encode_run(kind, max(1, run.level), run.ordinal, parts, dictionaries)
        for kind, parts in ((IDENTIFIED_SALES, remaining), (ANONYMOUS_SALES, erased))
        if parts["customer"].size
    ]


def _encode_run(kind: str, level: int, ordinal: int, parts: Mapping[str, Array], dictionaries: Dictionaries) -> NewRun:
    encoded = encode_parts(parts, dictionaries)
    size = sum(map(len, encoded.values()))
    first_s, last_s = int(parts["at_s"][0]), int(parts["at_s"][-1])
    return NewRun(Run(0, kind, level, ordinal, parts["customer"].size, size, first_s, last_s), encoded)


def _decode_run(run: Run, blobs: Blobs, dictionaries: Dictionaries) -> dict[str, Array]:
    if (run.id, PACKED) in blobs:
        return unpack(unpack_sales(blobs[run.id, PACKED]), dictionaries)
    if any((run.id, part) not in blobs for part in PARTS):
        raise _ConcurrentChangeError
    return read_flat({part: blobs[run.id, part] for part in PARTS}, dictionaries)


def _merge_patch_runs(runs: Sequence[Run], blobs: Blobs) -> NewRun:
    states = _last_states(runs, blobs)
    content = pack_customers(states)
    return NewRun(Run(0, "patch", 0, max(run.ordinal for run in runs), len(states), len(content)), {PACKED: content})


def _last_states(runs: Sequence[Run], blobs: Blobs) -> list[CustomerState]:
    if any((run.id, PACKED) not in blobs for run in runs):
        raise _ConcurrentChangeError
    return last_state_of_each(unpack_customers(blobs[run.id, PACKED]) for run in runs)


async def merge_patches(database: Database, organization_id: UUID, epoch: int) -> None:
    """Rewrite every block that the patches touch, and delete the patches."""
    async with database.transaction() as tx:
        runs = await columns.list_runs(tx, organization_id, epoch)
        patches = [run for run in runs if run.kind == "patch"]
        blobs = await queries.find_blobs(tx, organization_id, epoch, [run.id for run in patches], None)
    if not patches:
        return
    by_block: dict[int, list[CustomerState]] = {}
    for state in _last_states(patches, blobs):
        by_block.setdefault(state.number // BLOCK_CUSTOMERS, []).append(state)
    blocks = {run.ordinal: run for run in runs if run.kind == "block" and run.ordinal in by_block}
    new_runs = []
    for block, states in sorted(by_block.items()):
        parts: dict[str, bytes] = {}
        if block in blocks:
            async with database.transaction() as tx:
                block_blobs = await queries.find_blobs(tx, organization_id, epoch, [blocks[block].id], None)
            parts = {part: content for (_, part), content in block_blobs.items()}
            if not parts:
                raise _ConcurrentChangeError
        size, merged_parts = await asyncio.to_thread(merge_into_block, block, parts, states)
        new_runs.append(NewRun(Run(0, "block", 0, block, size, sum(map(len, merged_parts.values()))), merged_parts))
    last_patch = max(run.ordinal for run in patches)
    await _replace(database, organization_id, epoch, [*patches, *blocks.values()], new_runs, merged_patch=last_patch)


async def _purge(database: Database, organization_id: UUID, epoch: int) -> None:
    """Rewrite the blocks and sales runs that contain erased customers. An interrupted purge starts again. A
    customer who is erased during the purge is in a later patch and waits for the next purge."""
    await merge_patches(database, organization_id, epoch)
    async with database.transaction() as tx:
        started_at = tx.now
        state_before = await columns.find_state(tx, organization_id)
        runs = await columns.list_runs(tx, organization_id, epoch)
        erased = await _find_erased(tx, organization_id, epoch, [run for run in runs if run.kind == "block"])
    for run in [run for run in runs if run.kind == IDENTIFIED_SALES]:
        await _purge_sales(database, organization_id, epoch, run, erased)
    async with database.transaction() as tx:
        state = await columns.lock_state(tx, organization_id)
        if state is None or state_before is None or not state.epoch == state_before.epoch == epoch:
            return
        patches = [run for run in await columns.list_runs(tx, organization_id, epoch) if run.kind == "patch"]
        blobs = await queries.find_blobs(tx, organization_id, epoch, [run.id for run in patches], None)
        # `folded_to` is the last patch that was merged into blocks: a patch merged meanwhile may have erased customers.
        is_complete = state.folded_to == state_before.folded_to and all(
            customer.is_alive for customer in _last_states(patches, blobs)
        )
        state.erased_since = None if is_complete else started_at
        await columns.update_state(tx, organization_id, state)


async def _find_erased(tx: Tx, organization_id: UUID, epoch: int, blocks: Sequence[Run]) -> Array:
    """The numbers of the erased customers."""
    blobs = await queries.find_blobs(tx, organization_id, epoch, [run.id for run in blocks], ["alive"])
    numbers = [np.zeros(0, np.int64)]
    for run in blocks:
        if (run.id, "alive") not in blobs:
            raise _ConcurrentChangeError
        numbers.append(np.flatnonzero(decode(blobs[run.id, "alive"]) == 0) + run.ordinal * BLOCK_CUSTOMERS)
    return np.concatenate(numbers)


async def _purge_sales(
    database: Database, organization_id: UUID, epoch: int, run: Run, erased_customers: Array
) -> None:
    async with database.transaction() as tx:
        customer_blobs = await queries.find_blobs(tx, organization_id, epoch, [run.id], [PACKED, "customer"])
    if await asyncio.to_thread(_has_erased, run, customer_blobs, erased_customers):
        async with database.transaction() as tx:
            blobs = await queries.find_blobs(tx, organization_id, epoch, [run.id], None)
        new_runs = await asyncio.to_thread(_purge_run, run, blobs, erased_customers)
        await _replace(database, organization_id, epoch, [run], new_runs)


def _has_erased(run: Run, blobs: Blobs, erased_customers: Array) -> bool:
    if (run.id, PACKED) in blobs:
        customers = read_numbers(unpack_sales(blobs[run.id, PACKED]).customer)
    elif (run.id, "customer") in blobs:
        customers = decode(blobs[run.id, "customer"])
    else:
        raise _ConcurrentChangeError
    return bool(np.isin(customers, erased_customers).any())


async def _replace(
    database: Database,
    organization_id: UUID,
    epoch: int,
    old_runs: Sequence[Run],
    new_runs: Sequence[NewRun],
    *,
    merged_patch: int | None = None,
) -> None:
    """Replace the old runs by the new runs; `merged_patch` is the last patch that was merged into blocks."""
    ids = [await _write(database, organization_id, epoch, new_run) for new_run in new_runs]
    async with database.transaction() as tx:
        state = await columns.lock_state(tx, organization_id)
        if state is None or state.epoch != epoch or state.state == "ended":
            raise _ConcurrentChangeError
        deleted = await columns.delete_runs(tx, organization_id, epoch, [run.id for run in old_runs])
        live = await columns.make_live(tx, organization_id, epoch, ids)
        if deleted != len(old_runs) or live != len(ids):
            raise _ConcurrentChangeError
        state.folded_to = max(state.folded_to, merged_patch or 0)
        await columns.update_state(tx, organization_id, state)


async def _write(database: Database, organization_id: UUID, epoch: int, new_run: NewRun) -> int:
    """Write a run that is not live yet; return its id."""
    async with database.transaction() as tx:
        state = await columns.lock_state(tx, organization_id)
        if state is None or state.epoch != epoch or state.state == "ended":
            raise _ConcurrentChangeError
        run = new_run.run._replace(id=state.next_run)
        state.next_run += 1
        await columns.update_state(tx, organization_id, state)
        await columns.insert_run(tx, organization_id, epoch, run, is_live=False)
    for part, content in new_run.parts.items():
        async with database.transaction() as tx:
            await columns.insert_blob(tx, organization_id, epoch, run.id, part=part, content=content)
    return run.id


async def _delete_unfinished(database: Database, organization_id: UUID, epoch: int) -> None:
    """Delete runs of a process that died while writing; no other process writes while this process has the claim."""
    async with database.transaction() as tx:
        unfinished = await queries.list_unfinished(tx, organization_id, epoch)
        if unfinished:
            await columns.delete_runs(tx, organization_id, epoch, unfinished)
