"""A definition as a tree of cards: each step in words, with its figures, its faults and its two ways."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from regulars.conditions.check import Fault
from regulars.journeys.definition import Definition, Step
from regulars.journeys.labels import Told, kind_of, name_segments, tell_step, tell_ways
from regulars.journeys.program import FILTER, Forking
from regulars.journeys.stats import JourneyFigures, StepFigures
from regulars.kit.etag import etag_of
from regulars.web.format import Format

SKIPS: Mapping[str, str] = {
    "no_consent": "no consent",
    "not_linked": "number of somebody else",
    "suppressed": "a reply waits for a decision",
    "cap": "cap reached",
    "hours": "no open hours in time",
    "expired": "came too late",
    "no_country": "country unknown",
    "country_not_set": "country not set up",
    "missing_value": "a value is missing",
    "too_long": "too long",
    "erased": "erased",
    "left": "left the journey before",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One of the two ways of a forking step."""

    key: str
    name: str
    steps: "list[Card]"
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """`place` is where the step stands, such as 3.else.1; `id` is how runs know it."""

    place: str
    id: str
    # What people read of the place, such as 3, Yes, 2.
    label: str
    kind: str
    told: Told
    is_last: bool
    figure: str = ""
    figure_word: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)
    waiting: int = 0
    ways: list[Way] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    # What a form of the builder remembers of it.
    was: str = ""

    @property
    def style(self) -> str:
        return {"send_text": "is-send", "exit": "is-end"}.get(self.kind, "")


def draw(
    definition: Definition,
    faults: list[Fault],
    *,
    segments: Mapping[str, str],
    figures: JourneyFigures | None = None,
    formats: Format | None = None,
) -> list[Card]:
    """Without figures it is the builder's. `segments` are the names of those that it asks for."""
    return _Drawing(faults, segments, figures, formats).cards(definition.steps, "", "")


def step_labels(cards: list[Card]) -> dict[str, str]:
    """What the places of faults are called, and the steps that a run may stand at."""
    labels = {FILTER: "Only if", "reentry": "Trigger", "steps": "Steps"}
    for card in cards:
        labels[card.id] = f"{card.label}. {card.told.kind}"
        for way in card.ways:
            labels |= step_labels(way.steps)
    return labels


def faults_at(faults: list[Fault], *places: str) -> list[str]:
    return [fault.message for fault in faults if fault.place in places]


@dataclass(frozen=True, slots=True)
class _Drawing:
    faults: list[Fault]
    segments: Mapping[str, str]
    figures: JourneyFigures | None
    formats: Format | None

    def cards(self, steps: tuple[Step, ...], prefix: str, label: str) -> list[Card]:
        return [
            self._card(step, f"{prefix}{number}", f"{label}{number}", is_last=number == len(steps))
            for number, step in enumerate(steps, start=1)
        ]

    def _card(self, step: Step, place: str, label: str, *, is_last: bool) -> Card:
        identifier = step.id or place
        figure, word, notes, waiting = self._figures(step, identifier)
        told = tell_step(step)
        return Card(
            place=place,
            id=identifier,
            label=label,
            kind=kind_of(step),
            told=told._replace(name=name_segments(told.name, self.segments)),
            is_last=is_last,
            figure=figure,
            figure_word=word,
            notes=notes,
            waiting=waiting,
            ways=self._ways(step, identifier, place, label),
            faults=faults_at(self.faults, identifier),
            was=etag_of(step),
        )

    def _ways(self, step: Step, identifier: str, place: str, label: str) -> list[Way]:
        if not isinstance(step, Forking):
            return []
        names = tell_ways(step)
        return [
            Way(
                key=key,
                name=self._way_name(name, identifier, key),
                steps=self.cards(steps, f"{place}.{key}.", f"{label}, {name}, "),
                place=f"{place}.{key}",
            )
            for key, name, steps in (("then", names[0], step.then), ("else", names[1], step.otherwise))
        ]

    def _way_name(self, name: str, identifier: str, event: str) -> str:
        if self.figures is None or self.formats is None:
            return name
        return f"{name}, {self.formats.number(self.figures.at(identifier).times(event))}"

    def _figures(self, step: Step, identifier: str) -> tuple[str, str, list[tuple[str, str]], int]:
        if self.figures is None or self.formats is None:
            return "", "", [], 0
        at = self.figures.at(identifier)
        number, word = _main_figure(kind_of(step), at)
        notes = [(self.formats.number(times), words) for times, words in _notes(kind_of(step), at) if times]
        return self.formats.number(number), word, notes, at.waiting


def _main_figure(kind: str, at: StepFigures) -> tuple[int, str]:
    match kind:
        case "wait" | "wait_until":
            return at.times("went on"), "passed"
        case "send_text":
            return at.sent, "sent"
        case "set_attribute":
            return at.times("set"), "set"
        case "exit":
            return at.times("ended"), "left"
        case _:
            return at.times("then") + at.times("else"), "decided"


def _notes(kind: str, at: StepFigures) -> list[tuple[int, str]]:
    if kind != "send_text":
        return []
    found = [(at.times(f"text {state}"), state) for state in ("delivered", "failed", "unknown")]
    return [*found, *((times, f"skipped: {SKIPS.get(reason, reason)}") for reason, times in at.skips)]
