"""What the process holds of each organization, within a budget: columns that were not asked for longest go first."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np

from regulars.segments.analysis.engine.coded_values import Reading
from regulars.segments.analysis.engine.customer_columns import PROFILE, Column, apply, grown, last_of_each
from regulars.segments.analysis.engine.encoding import Array
from regulars.segments.analysis.engine.queries import Snapshot
from regulars.segments.analysis.engine.sales_runs import SalesRun, Words, is_told
from regulars.segments.columns.model import CustomerState, Run

RESULTS_BYTES_MAX: Final = 256 << 20


class Result(NamedTuple):
    """For whom a condition holds, for whom that is not known, and who has a value that its type cannot read."""

    held: Array
    unknown: Array | None = None
    unreadable: Array | None = None


class Results:
    """What conditions came to, the one that was asked for last at the end.

    A question may have thousands of conditions, with other segments in it: of more than this, the oldest go at once.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[tuple[object, ...], Result] = OrderedDict()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._results)

    def find(self, key: tuple[object, ...]) -> Result | None:
        known = self._results.get(key)
        if known is not None:
            self._results.move_to_end(key)
        return known

    def keep(self, key: tuple[object, ...], result: Result) -> Result:
        """Of one that was not found."""
        self._results[key] = result
        self.nbytes += _bytes_of(result)
        while self.nbytes > RESULTS_BYTES_MAX and len(self._results) > 1:
            self.drop_oldest()
        return result

    def drop_oldest(self) -> None:
        _, result = self._results.popitem(last=False)
        self.nbytes -= _bytes_of(result)

    def clear(self) -> None:
        self._results.clear()
        self.nbytes = 0


def _bytes_of(result: Result) -> int:
    return sum(part.nbytes for part in result if part is not None)


class Held:
    """One organization's columns as of the snapshot it was last brought to."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        # As it was last seen: once it is another, those who were erased then are out of the blobs.
        self.erased_since = snapshot.erased_since
        self.words = Words()
        self.columns: OrderedDict[str, Column] = OrderedDict()
        self.patches: dict[int, list[CustomerState]] = {}
        # Patches up to this one are in the columns.
        self.applied_to = 0
        self.sales: dict[int, SalesRun] = {}
        # Which parts of sales were asked for, the last one last.
        self.parts: OrderedDict[str, None] = OrderedDict()
        # Numbers that nobody may text, and the count of changes of consents when they were read.
        self.forbidden = np.zeros(0, np.uint64)
        self.forbidden_as_of: int | None = None
        self.results = Results()
        self.reading = Reading()

    @property
    def size(self) -> int:
        return self.snapshot.next_number

    @property
    def customers_as_of(self) -> tuple[int, int]:
        ordinals = [run.ordinal for run in self.snapshot.runs if run.kind == "patch"]
        return self.snapshot.epoch, max([self.snapshot.folded_to, *ordinals])

    @property
    def sales_as_of(self) -> tuple[int, int]:
        ordinals = [run.ordinal for run in self.snapshot.runs if run.kind == "sales"]
        return self.snapshot.epoch, max([0, *ordinals])

    def profile_of(self, number: int) -> UUID:
        """Of one who is alive."""
        high, low = (self.columns[name] for name in PROFILE)
        if not isinstance(high, np.ndarray) or not isinstance(low, np.ndarray):
            raise TypeError("ids are kept as numbers")
        return UUID(int=int(high[number]) << 64 | int(low[number]))

    def runs(self, kind: str) -> list[Run]:
        return [run for run in self.snapshot.runs if run.kind == kind]

    def stays(self, erased_since: datetime | None) -> bool:
        """Whether nobody was taken out of the blobs since the last look, who would still be in memory."""
        if self.erased_since not in {None, erased_since}:
            return False
        self.erased_since = erased_since
        return True

    def bring_to(self, snapshot: Snapshot) -> None:
        """Keep what is still true: runs never change, and a fold moves patches that the columns already have."""
        self.snapshot = snapshot
        if snapshot.folded_to > self.applied_to:
            self.columns.clear()
            self.results.clear()
        live = {run.id for run in snapshot.runs}
        self.patches = {run_id: states for run_id, states in self.patches.items() if run_id in live}
        self.sales = {run_id: run for run_id, run in self.sales.items() if run_id in live}

    def apply_patches(self) -> None:
        """Write the patches that came since into the columns that are here."""
        new = [run for run in self.runs("patch") if run.ordinal > self.applied_to]
        if self.columns:
            states = last_of_each(self.patches[run.id] for run in new)
            for name, column in self.columns.items():
                self.columns[name] = grown(name, column, self.size)
                apply(name, self.columns[name], states)
        self.applied_to = max([self.snapshot.folded_to, *(run.ordinal for run in self.runs("patch"))])

    def all_patches(self) -> list[CustomerState]:
        return last_of_each(self.patches[run.id] for run in self.runs("patch"))

    @property
    def nbytes(self) -> int:
        columns = sum(column.nbytes for column in self.columns.values())
        sales = sum(run.nbytes for run in self.sales.values())
        patches = 600 * sum(len(states) for states in self.patches.values())
        return columns + sales + patches + self.words.nbytes + self.forbidden.nbytes + self.results.nbytes

    def give_back(self, wanted: set[str]) -> bool:
        """Let go of the one thing that was asked for longest ago, and is not wanted now; False if there is none."""
        if self.results:
            self.results.drop_oldest()
            return True
        for name in self.columns:
            if name not in wanted:
                del self.columns[name]
                return True
        for part in self.parts:
            if part not in wanted:
                del self.parts[part]
                self._drop(part)
                return True
        if self.sales:
            # Not even what is wanted fits: it is read again for the next question. Results, which are found by codes
            # of these words, went before.
            self.sales.clear()
            self.parts.clear()
            self.words = Words()
            return True
        return False

    def _drop(self, part: str) -> None:
        for run in self.sales.values():
            for name in [name for name in run.parts if name == part or _is_made_of(name, part)]:
                del run.parts[name]
            if not any(map(is_told, run.parts)):
                run.parts.pop("starts", None)
        self.words.forget(part)


def _is_made_of(key: str, part: str) -> bool:
    return (key.startswith("day:") and part == "at_s") or (key == "unit" and part == "quantity")


class Memory:
    """The organizations, the one that was asked for last at the end."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: OrderedDict[UUID, Held] = OrderedDict()

    def find(self, organization_id: UUID, snapshot: Snapshot) -> Held:
        held = self._held.get(organization_id)
        if held is None or held.snapshot.epoch != snapshot.epoch or not held.stays(snapshot.erased_since):
            held = self._held[organization_id] = Held(snapshot)
        else:
            held.bring_to(snapshot)
        self._held.move_to_end(organization_id)
        return held

    def list_held(self) -> list[tuple[UUID, Held]]:
        return list(self._held.items())

    def reading_of(self, organization_id: UUID) -> Reading:
        held = self._held.get(organization_id)
        return Reading() if held is None else held.reading

    def forget(self, organization_id: UUID) -> None:
        self._held.pop(organization_id, None)

    def make_room(self, organization_id: UUID, wanted: set[str], *, is_busy: Callable[[UUID], bool]) -> None:
        """Bring what is held below the budget: first of organizations that nobody asks about now, in the order in which
        they were asked for, then of the one that was just answered."""
        others = [it for it in self._held if it != organization_id and not is_busy(it)]
        while self.nbytes() > self._bytes_max:
            if others:
                if not self._held[others[0]].give_back(set()):
                    del self._held[others.pop(0)]
            elif not self._held[organization_id].give_back(wanted):
                return

    def nbytes(self) -> int:
        return sum(held.nbytes for held in self._held.values())
