"""Builds the cards of a journey's flow: for each step a summary, statistics, faults and paths to further cards."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from regulars.conditions.check import Fault
from regulars.journeys.definition import Definition, Step
from regulars.journeys.labels import StepSummary, describe_paths, describe_step, kind_of, name_references
from regulars.journeys.program import FILTER, paths_of
from regulars.journeys.stats import JourneyStats, StepStats
from regulars.kit.etag import etag_of
from regulars.texts.labels import name_reason
from regulars.web.format import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPath:
    """One of the two paths after a step that divides the flow; `key` is `then` or `else`."""

    key: str
    name: str
    steps: "list[Card]"
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The card of a step. `place` is the path of the step in the definition, such as 3.else.1; `id` is the id that runs
    and traces store. `figure` is the main count of the step, as text."""

    place: str
    id: str
    # The place as users read it, such as 3, Yes, 2.
    label: str
    kind: str
    summary: StepSummary
    is_last: bool
    figure: str = ""
    figure_label: str = ""
    details: list[tuple[str, str]] = field(default_factory=list)
    waiting: int = 0
    paths: list[FlowPath] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    # The etag of the step as it is shown. The builder's forms send it back to detect a change by another user.
    was: str = ""

    @property
    def style(self) -> str:
        return {"send_text": "is-send", "exit": "is-end"}.get(self.kind, "")


def build_cards(
    definition: Definition,
    faults: list[Fault],
    *,
    names: Mapping[str, str],
    stats: JourneyStats | None = None,
    formats: Format | None = None,
) -> list[Card]:
    """Build the cards, without statistics for the builder. `names` has the names of the segments and campaigns that
    conditions refer to, by id."""
    return _CardBuilder(faults, names, stats, formats).build(definition.steps, "", "")


def step_labels(cards: list[Card]) -> dict[str, str]:
    """The labels of step ids, and of other locations of faults."""
    labels = {FILTER: "Only if", "reentry": "Trigger", "steps": "Steps"}
    for card in cards:
        labels[card.id] = f"{card.label}. {card.summary.kind}"
        for path in card.paths:
            labels |= step_labels(path.steps)
    return labels


def faults_at(faults: list[Fault], *locations: str) -> list[str]:
    return [fault.message for fault in faults if fault.place in locations]


@dataclass(frozen=True, slots=True)
class _CardBuilder:
    faults: list[Fault]
    names: Mapping[str, str]
    stats: JourneyStats | None
    formats: Format | None

    def build(self, steps: tuple[Step, ...], prefix: str, label: str) -> list[Card]:
        return [
            self._build_card(step, f"{prefix}{number}", f"{label}{number}", is_last=number == len(steps))
            for number, step in enumerate(steps, start=1)
        ]

    def _build_card(self, step: Step, place: str, label: str, *, is_last: bool) -> Card:
        identifier = step.id or place
        figure, figure_label, details, waiting = self._describe_stats(step, identifier)
        summary = describe_step(step)
        return Card(
            place=place,
            id=identifier,
            label=label,
            kind=kind_of(step),
            summary=summary._replace(name=name_references(summary.name, self.names)),
            is_last=is_last,
            figure=figure,
            figure_label=figure_label,
            details=details,
            waiting=waiting,
            paths=self._build_paths(step, identifier, place, label),
            faults=faults_at(self.faults, identifier),
            was=etag_of(step),
        )

    def _build_paths(self, step: Step, identifier: str, place: str, label: str) -> list[FlowPath]:
        return [
            FlowPath(
                key=key,
                name=self._name_path(name, identifier, key),
                steps=self.build(steps, f"{place}.{key}.", f"{label}, {name}, "),
                place=f"{place}.{key}",
            )
            for (key, steps), name in zip(paths_of(step), describe_paths(step), strict=False)
        ]

    def _name_path(self, name: str, identifier: str, event: str) -> str:
        if self.stats is None or self.formats is None:
            return name
        return f"{name}, {self.formats.number(self.stats.at(identifier).times(event))}"

    def _describe_stats(self, step: Step, identifier: str) -> tuple[str, str, list[tuple[str, str]], int]:
        """The main count of a step, its label, further counts with labels, and the number of waiting runs."""
        if self.stats is None or self.formats is None:
            return "", "", [], 0
        kind, stats = kind_of(step), self.stats.at(identifier)
        number, label = _main_count(kind, stats)
        details = [(self.formats.number(count), detail) for count, detail in _details(kind, stats) if count]
        return self.formats.number(number), label, details, stats.waiting


def _main_count(kind: str, stats: StepStats) -> tuple[int, str]:
    match kind:
        case "wait" | "wait_until":
            return stats.times("went on"), "passed"
        case "send_text":
            return stats.sent, "sent"
        case "set_attribute":
            return stats.times("set"), "set"
        case "exit":
            return stats.times("ended"), "left"
        case _:
            return stats.times("then") + stats.times("else"), "passed"


def _details(kind: str, stats: StepStats) -> list[tuple[int, str]]:
    if kind != "send_text":
        return []
    labels = {"delivered": "delivered", "failed": "failed", "unknown": "may have been sent"}
    counts = [(stats.times(f"text {state}"), label) for state, label in labels.items()]
    return [*counts, *((count, f"skipped: {name_reason(reason)}") for reason, count in stats.skips)]
