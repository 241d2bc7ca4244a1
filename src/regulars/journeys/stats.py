"""Reads statistics of journeys: how often each event happened at each step of a version, and sums per journey."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from regulars.kit.columns import fill
from regulars.kit.db import Tx

# The prefix of event names of texts, such as `text sent`.
TEXT_PREFIX = "text "


class Total(NamedTuple):
    """How often an event happened at a step: a row of `journey_totals`."""

    journey_id: UUID
    version: int
    step: str
    event: str
    times: int


@dataclass(slots=True)
class StepStats:
    """The counts of events at one step."""

    events: Counter[str] = field(default_factory=Counter)

    def times(self, event: str) -> int:
        return self.events[event]

    @property
    def waiting(self) -> int:
        """The number of runs that wait at this step: those that began to wait, minus those that continued or ended."""
        waited = self.events["waits"]
        return max(0, waited - sum(self.events[it] for it in ("went on", "then", "else", "ended"))) if waited else 0

    @property
    def sent(self) -> int:
        """The number of sent texts. A delivery may be counted before the sending, so a delivered text counts as
        sent."""
        return max(self.events[f"{TEXT_PREFIX}sent"], self.events[f"{TEXT_PREFIX}delivered"])

    @property
    def skips(self) -> list[tuple[str, int]]:
        """Why texts were skipped, the most frequent first."""
        prefix = f"{TEXT_PREFIX}skipped "
        reasons = [(it.removeprefix(prefix), times) for it, times in self.events.items() if it.startswith(prefix)]
        return sorted(reasons, key=lambda reason: (-reason[1], reason[0]))


@dataclass(slots=True)
class JourneyStats:
    """Statistics by step id; "" is the entry into the journey."""

    steps: dict[str, StepStats] = field(default_factory=dict)

    def at(self, step: str) -> StepStats:
        return self.steps.get(step) or StepStats()

    @property
    def entered(self) -> int:
        return self.at("").times("entered")

    @property
    def ended(self) -> int:
        return sum(step.times("ended") for step in self.steps.values())

    @property
    def active_runs(self) -> int:
        return max(0, self.entered - self.ended)

    @property
    def sent(self) -> int:
        return sum(step.sent for step in self.steps.values())

    @property
    def skipped(self) -> int:
        return sum(times for step in self.steps.values() for _, times in step.skips)


async def load_stats(tx: Tx, organization_id: UUID, journey_id: UUID) -> dict[int, JourneyStats]:
    """Statistics by version; a version that no customer entered is absent."""
    totals = await _list_totals(tx, organization_id, [journey_id])
    return {
        version: _add_up(total for total in totals if total.version == version)
        for version in sorted({total.version for total in totals})
    }


async def load_total_stats(tx: Tx, organization_id: UUID, journey_ids: Collection[UUID]) -> dict[UUID, JourneyStats]:
    """Sums over all versions of each journey. Versions have different steps, so the steps are not meaningful."""
    totals = await _list_totals(tx, organization_id, journey_ids) if journey_ids else []
    return {
        journey_id: _add_up(total for total in totals if total.journey_id == journey_id) for journey_id in journey_ids
    }


def _add_up(totals: Iterable[Total]) -> JourneyStats:
    stats = JourneyStats()
    for total in totals:
        stats.steps.setdefault(total.step, StepStats()).events[total.event] += total.times
    return stats


async def _list_totals(tx: Tx, organization_id: UUID, journey_ids: Collection[UUID]) -> list[Total]:
    return await tx.fetch_all(
        Total,
        "SELECT {columns} FROM journey_totals WHERE organization_id = %s AND journey_id = ANY (%s::uuid[])",
        (organization_id, list(journey_ids)),
    )


_COUNT_RUNS: Final = """
    SELECT capped.journey_id, count(*) FROM (
        SELECT journey_id FROM journey_runs
        WHERE organization_id = %s AND {condition}
        LIMIT %s
    ) AS capped
    GROUP BY capped.journey_id
    """
_COUNT_AT_FAULT: Final = fill(_COUNT_RUNS, condition="waits_for = 'fault'")
_COUNT_PARKED: Final = fill(_COUNT_RUNS, condition="state = 'parked'")


async def count_at_fault(tx: Tx, organization_id: UUID, *, limit: int) -> dict[UUID, int]:
    """Count runs that wait at a branch that cannot be evaluated, by journey; stops at `limit`."""
    return dict(await tx.fetch(_COUNT_AT_FAULT, (organization_id, limit)))


async def count_parked(tx: Tx, organization_id: UUID, *, limit: int) -> dict[UUID, int]:
    """Count parked runs, which failed at every attempt, by journey; stops at `limit`."""
    return dict(await tx.fetch(_COUNT_PARKED, (organization_id, limit)))
