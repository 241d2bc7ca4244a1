"""Caches the columns of each organization, a columnar copy of customers and sales, within a memory budget; the least
recently used are evicted first.

A run is an immutable stored chunk of the columns: a patch has changed customers, a block a range of customers, and all
other runs have sales. Patches are numbered (`ordinal`) and later merged into blocks. An array of a run of sales is a
part. An epoch is the number of one build of all columns.
"""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import numpy as np

from regulars.columns.engine.coded_values import LoadProgress
from regulars.columns.engine.customer_columns import PROFILE, Column, apply_states, extend, last_state_of_each
from regulars.columns.engine.encoding import Array
from regulars.columns.engine.run_rows import Snapshot
from regulars.columns.engine.sales_runs import BOUGHT, Dictionaries, SalesRun, is_product_part, scale_of
from regulars.columns.model import IDENTIFIED_SALES, CustomerState, Run
from regulars.kit.bounded_cache import BoundedCache

RESULTS_BYTES_MAX: Final = 256 << 20
# A run is large if it has at least 1/16 of the rows of the largest run of its kind.
LARGE_RUN_DIVISOR: Final = 16

ColumnType = TypeVar("ColumnType")


class Result(NamedTuple):
    """Masks of customers: those for whom a condition holds, for whom its result is unknown, and whose value cannot be
    parsed. Any other cached array, such as an encoded answer, is in `holds`."""

    holds: Array
    unknown: Array | None = None
    unreadable: Array | None = None

    def __and__(self, other: "Result") -> "Result":
        holds = self.holds & other.holds
        if self.unknown is None and other.unknown is None:
            return Result(holds, None, _merge(self.unreadable, other.unreadable))
        return Result(holds, self._may_hold & other._may_hold & ~holds, _merge(self.unreadable, other.unreadable))

    def __invert__(self) -> "Result":
        return Result(~self._may_hold, self.unknown, self.unreadable)

    @property
    def _may_hold(self) -> Array:
        may_hold: Array = self.holds if self.unknown is None else self.holds | self.unknown
        return may_hold


def _merge(one: Array | None, other: Array | None) -> Array | None:
    return one if other is None else other if one is None else one | other


def _bytes_of(result: Result) -> int:
    return sum(part.nbytes for part in result if part is not None)


class CachedColumns:
    """One organization's columns as of the last snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        # The time of the oldest erasure that is not purged from the stored columns. If it changes, customers were
        # purged there, but not from this cache.
        self.erased_since = snapshot.erased_since
        self.dictionaries = Dictionaries()
        self.columns: OrderedDict[str, Column] = OrderedDict()
        self.patches: dict[int, list[CustomerState]] = {}
        # The ordinal of the last patch that is applied to the columns.
        self.last_applied_patch = 0
        self.sales: dict[int, SalesRun] = {}
        # The names of the loaded parts, the most recently used last.
        self.parts: OrderedDict[str, None] = OrderedDict()
        # Hashes of do-not-contact numbers, and the counter of consent changes when they were read.
        self.do_not_contact_hashes = np.zeros(0, np.uint64)
        self.do_not_contact_as_of: int | None = None
        # A query with references to other segments may have thousands of conditions, so results have a separate memory
        # budget.
        self.results = BoundedCache[tuple[object, ...], Result](RESULTS_BYTES_MAX, bytes_of=_bytes_of)
        self.progress = LoadProgress()

    @property
    def size(self) -> int:
        """The length of the columns: the number of customers, including erased customers."""
        return self.snapshot.next_number

    @property
    def customers_as_of(self) -> tuple[int, int]:
        """The version of the customers: the build, and the last patch."""
        ordinals = [run.ordinal for run in self.snapshot.runs if run.kind == "patch"]
        return self.snapshot.epoch, max([self.snapshot.last_merged_patch, *ordinals])

    @property
    def sales_as_of(self) -> tuple[int, int]:
        """The version of the sales that segments read. A sale without a customer changes no segment and is not
        included."""
        ordinals = [run.ordinal for run in self.snapshot.runs if run.kind == IDENTIFIED_SALES]
        return self.snapshot.epoch, max([0, *ordinals])

    def profile_of(self, number: int) -> UUID:
        """The profile id of a customer who is not erased."""
        high, low = self.profile_columns()
        return UUID(int=int(high[number]) << 64 | int(low[number]))

    def profile_ids_of(self, mask: Array) -> Array:
        """The profile ids of the customers in a mask, 16 bytes each. Erased customers have no id, so the mask must not
        contain them."""
        high, low = self.profile_columns()
        return np.column_stack((high[mask], low[mask])).astype(">u8")

    def profile_columns(self) -> tuple[Array, Array]:
        """The profile ids of all customers, as two 64-bit integers each."""
        high, low = (self.column(name, np.ndarray) for name in PROFILE)
        return high, low

    def column(self, name: str, kind: type[ColumnType]) -> ColumnType:
        """The loaded column of customers with this name, which is of this kind."""
        column = self.columns[name]
        if not isinstance(column, kind):
            raise TypeError(f"{name} is not stored as {kind.__name__}")
        return column

    def runs(self, *kinds: str) -> list[Run]:
        return [run for run in self.snapshot.runs if run.kind in kinds]

    def is_large(self, run: Run) -> bool:
        """Whether results of this run are worth caching. New sales are in small runs, which compaction soon merges."""
        return run.rows * LARGE_RUN_DIVISOR >= max(other.rows for other in self.snapshot.runs if other.kind == run.kind)

    def is_still_valid(self, erased_since: datetime | None) -> bool:
        """Whether no customer who may be in this cache was purged from the stored columns since the last check."""
        if self.erased_since not in {None, erased_since}:
            return False
        self.erased_since = erased_since
        return True

    def update_to(self, snapshot: Snapshot) -> None:
        """Drop the cached data that is no longer valid. Runs are immutable, and columns to which a patch is applied do
        not change when it is merged into blocks, so most data remains."""
        self.snapshot = snapshot
        if snapshot.last_merged_patch > self.last_applied_patch:
            self.columns.clear()
            self.results.clear()
        live = {run.id for run in snapshot.runs}
        self.patches = {run_id: states for run_id, states in self.patches.items() if run_id in live}
        self.sales = {run_id: run for run_id, run in self.sales.items() if run_id in live}

    def apply_patches(self) -> None:
        """Apply the patches (changed customers) that are not applied yet to the cached columns."""
        new_patches = [run for run in self.runs("patch") if run.ordinal > self.last_applied_patch]
        if self.columns:
            states = last_state_of_each(self.patches[run.id] for run in new_patches)
            for name, column in self.columns.items():
                self.columns[name] = extend(name, column, self.size)
                apply_states(name, self.columns[name], states)
        self.last_applied_patch = max([self.snapshot.last_merged_patch, *(run.ordinal for run in self.runs("patch"))])

    def patched_states(self) -> list[CustomerState]:
        """The last state of each customer who is in a patch."""
        return last_state_of_each(self.patches[run.id] for run in self.runs("patch"))

    @property
    def nbytes(self) -> int:
        columns = sum(column.nbytes for column in self.columns.values())
        sales = sum(run.nbytes for run in self.sales.values())
        # A patch takes about 600 bytes per customer.
        patches = 600 * sum(len(states) for states in self.patches.values())
        caches = self.dictionaries, self.do_not_contact_hashes, self.results
        return columns + sales + patches + sum(cache.nbytes for cache in caches)

    def evict(self, required: set[str], bytes_min: int) -> int | None:
        """Evict results until that many bytes are free or, without results, the least recently used item that is not
        required now; return how many bytes that freed, or None if there is no such item."""
        if self.results:
            return self.results.drop_oldest(bytes_min)
        for name in self.columns:
            if name not in required:
                return self.columns.pop(name).nbytes
        for part in self.parts:
            if part not in required:
                del self.parts[part]
                return self._drop(part)
        if self.sales:
            # Even the required parts exceed the budget, so they are evicted and the next request loads them again. The
            # results, which depend on the codes of the dictionaries, were evicted before.
            nbytes = self.nbytes
            self.sales.clear()
            self.parts.clear()
            self.dictionaries = Dictionaries()
            return nbytes - self.nbytes
        return None

    def _drop(self, part: str) -> int:
        """Drop a part from all runs; return its size in bytes."""
        nbytes = self.dictionaries.forget(part)
        for run in self.sales.values():
            for name in [name for name in run.parts if name == part or _is_derived_from(name, part)]:
                nbytes += run.parts.pop(name).nbytes
            if "starts" in run.parts and not any(map(is_product_part, run.parts)):
                # The first line of each product.
                nbytes += run.parts.pop("starts").nbytes
        return nbytes


def _is_derived_from(key: str, part: str) -> bool:
    """Whether a cached array was computed from the part: local days and purchase days from times, or its scale."""
    return (key.startswith(("day:", BOUGHT)) and part == "at_s") or key == scale_of(part)


class ColumnCache:
    """The cached columns of all organizations, the most recently used last."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._organizations: OrderedDict[UUID, CachedColumns] = OrderedDict()

    def find(self, organization_id: UUID, snapshot: Snapshot) -> CachedColumns:
        """Find the organization's columns and update them to the snapshot; new, empty columns if they are invalid."""
        cached = self._organizations.get(organization_id)
        if (
            cached is None
            or cached.snapshot.epoch != snapshot.epoch
            or not cached.is_still_valid(snapshot.erased_since)
        ):
            cached = self._organizations[organization_id] = CachedColumns(snapshot)
        else:
            cached.update_to(snapshot)
        self._organizations.move_to_end(organization_id)
        return cached

    def list_cached(self) -> list[tuple[UUID, CachedColumns]]:
        return list(self._organizations.items())

    def progress_of(self, organization_id: UUID) -> LoadProgress:
        cached = self._organizations.get(organization_id)
        return LoadProgress() if cached is None else cached.progress

    def forget(self, organization_id: UUID) -> None:
        self._organizations.pop(organization_id, None)

    def evict_to_budget(self, organization_id: UUID, required: set[str], *, is_busy: Callable[[UUID], bool]) -> None:
        """Evict down to the budget: first from organizations without an open request, the least recently used first,
        then from the organization of this request."""
        idle_ids = [id_ for id_ in self._organizations if id_ != organization_id and not is_busy(id_)]
        # The sizes of all items are added up once and not for each evicted item, of which there may be thousands.
        excess = self.nbytes() - self._bytes_max
        while excess > 0:
            if idle_ids:
                freed = self._organizations[idle_ids[0]].evict(set(), excess)
                if freed is None:
                    freed = self._organizations.pop(idle_ids.pop(0)).nbytes
            else:
                freed = self._organizations[organization_id].evict(required, excess)
                if freed is None:
                    return
            excess -= freed

    def nbytes(self) -> int:
        return sum(cached.nbytes for cached in self._organizations.values())
