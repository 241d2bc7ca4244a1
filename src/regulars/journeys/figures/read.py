"""Read figures: of whole journeys for lists, of each step of a version for its flow."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from regulars.journeys.figures import queries
from regulars.journeys.figures.queries import Total
from regulars.kit.db import Tx

TEXT = "text "


@dataclass(slots=True)
class StepFigures:
    """What happened at one step."""

    events: Counter[str] = field(default_factory=Counter)

    def times(self, event: str) -> int:
        return self.events[event]

    @property
    def waiting(self) -> int:
        """Those who came to wait here, less those who went on or left; a repair may make it look negative."""
        waited = self.events["waits"]
        return max(0, waited - sum(self.events[it] for it in ("went on", "then", "else", "ended"))) if waited else 0

    @property
    def sent(self) -> int:
        """A receipt may come before our own note, so a delivered text counts as sent."""
        return max(self.events[f"{TEXT}sent"], self.events[f"{TEXT}delivered"])

    @property
    def skips(self) -> list[tuple[str, int]]:
        """Why texts were skipped, the most frequent first."""
        prefix = f"{TEXT}skipped "
        found = [(it.removeprefix(prefix), times) for it, times in self.events.items() if it.startswith(prefix)]
        return sorted(found, key=lambda one: (-one[1], one[0]))


@dataclass(slots=True)
class JourneyFigures:
    """`step` "" is the entry."""

    steps: dict[str, StepFigures] = field(default_factory=dict)

    def at(self, step: str) -> StepFigures:
        return self.steps.get(step) or StepFigures()

    @property
    def entered(self) -> int:
        return self.at("").times("entered")

    @property
    def ended(self) -> int:
        return sum(step.times("ended") for step in self.steps.values())

    @property
    def inside(self) -> int:
        return max(0, self.entered - self.ended)

    @property
    def sent(self) -> int:
        return sum(step.sent for step in self.steps.values())

    @property
    def skipped(self) -> int:
        return sum(times for step in self.steps.values() for _, times in step.skips)


async def read_figures(tx: Tx, organization_id: UUID, journey_id: UUID) -> dict[int, JourneyFigures]:
    """By version; a version that nobody entered is missing."""
    totals = await queries.list_totals(tx, organization_id, [journey_id])
    return {
        version: _add_up(total for total in totals if total.version == version)
        for version in sorted({total.version for total in totals})
    }


async def read_sums(tx: Tx, organization_id: UUID, journey_ids: Collection[UUID]) -> dict[UUID, JourneyFigures]:
    """All versions of each journey together: steps are those of their versions, so only sums mean something."""
    totals = await queries.list_totals(tx, organization_id, journey_ids) if journey_ids else []
    return {one: _add_up(total for total in totals if total.journey_id == one) for one in journey_ids}


async def count_parked(tx: Tx, organization_id: UUID, *, most: int) -> dict[UUID, int]:
    """How many runs of each journey wait for a person."""
    return dict(await queries.count_parked(tx, organization_id, most=most))


async def count_at_fault(tx: Tx, organization_id: UUID, *, most: int) -> dict[UUID, int]:
    """How many runs of each journey wait at a branch that cannot be judged."""
    return dict(await queries.count_at_fault(tx, organization_id, most=most))


def _add_up(totals: Iterable[Total]) -> JourneyFigures:
    figures = JourneyFigures()
    for total in totals:
        figures.steps.setdefault(total.step, StepFigures()).events[total.event] += total.times
    return figures
