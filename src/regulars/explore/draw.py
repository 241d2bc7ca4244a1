"""Geometry of the small drawings: bars per day, a line, a number's consent through time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

WHOLE: Final = 100.0  # the width of a chart is per cent, so that its text is not scaled with it
TOP: Final = 8.0
FLOOR: Final = 144.0
STEPS: Final = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
LABELS_MAX: Final = 6
SPARK_WIDTH: Final = 160.0
SPARK_HEIGHT: Final = 32.0
STRIP_WIDTH: Final = 328.0
_THOUSAND: Final = 1000
_MILLION: Final = 1_000_000


class Bar(NamedTuple):
    x: str
    y: str
    width: str
    height: str
    kind: str
    title: str


class Rule(NamedTuple):
    y: str
    text_y: str
    label: str


class Label(NamedTuple):
    x: str
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    bars: list[Bar]
    rules: list[Rule]
    labels: list[Label]


def bar_chart(values: Sequence[float], *, titles: Sequence[str], labels: Sequence[str], is_last_open: bool) -> Chart:
    """Bars from 0; a day that nets below 0 hangs under the floor in the colour of returns."""
    top = nice_top(max([*values, 0.0]))
    slot = WHOLE / max(1, len(values))
    bars = []
    for n, value in enumerate(values):
        height = min(abs(value) / top * (FLOOR - TOP), FLOOR - TOP)
        y = FLOOR - height if value >= 0 else FLOOR
        is_open = is_last_open and n == len(values) - 1
        kind = "c4" if value < 0 else "c1 is-open" if is_open else "c1"
        x = slot * (n + 0.16)
        bars.append(Bar(_percent(x), _c(y), _percent(slot * 0.68), _c(max(height, 0.0)), kind, titles[n]))
    rules = [Rule(_c(y), _c(y + 4), short(top * part)) for part in (0, 0.5, 1) for y in [FLOOR - part * (FLOOR - TOP)]]
    every = max(1, math.ceil(len(values) / LABELS_MAX))
    shown = [Label(_percent(slot * (n + 0.5)), text) for n, text in enumerate(labels) if n % every == 0]
    return Chart(bars, rules, shown)


def nice_top(value: float) -> float:
    """The next round number above, so that the rules stand on numbers that people read; half of it is whole too, since
    nobody counts half a customer."""
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    tops = [step * size for step in STEPS if step * size >= value]
    return next((top for top in tops if (top / 2).is_integer()), tops[0])


def short(value: float) -> str:
    if value >= _MILLION:
        return f"{value / _MILLION:g}M"
    return f"{value / _THOUSAND:g}k" if value >= _THOUSAND else f"{value:g}"


def sparkline(values: Sequence[float]) -> str:
    """The points of a line without an axis, so it may begin anywhere."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = SPARK_WIDTH / max(1, len(values) - 1)
    return " ".join(
        f"{_c(n * step)},{_c(SPARK_HEIGHT - 4 - (value - low) / span * (SPARK_HEIGHT - 8))}"
        for n, value in enumerate(values)
    )


class Column(NamedTuple):
    """One hour of a store's day."""

    x: int
    y: str
    height: str
    kind: str


def hours(sent: Sequence[int], usual: Sequence[float]) -> list[Column]:
    """A store's hours: what it sent, and a thin mark where it usually sends and did not."""
    top = max([*sent, *usual, 1])
    columns = []
    for n, (count, expected) in enumerate(zip(sent, usual, strict=True)):
        if count:
            height = max(1.0, count / top * 18)
            columns.append(Column(7 * n, _c(18 - height), _c(height), "c1"))
        elif expected:
            columns.append(Column(7 * n, "17.0", "1.0", "past"))
    return columns


class Span(NamedTuple):
    """A stretch of a number's consent."""

    x: str
    width: str
    kind: str


class Change(NamedTuple):
    at: datetime
    is_opt_in: bool


@dataclass(frozen=True, slots=True)
class Strip:
    spans: list[Span]
    asked_x: str | None
    asked_anchor: str


def consent_strip(changes: Sequence[Change], *, start: datetime, end: datetime, asked: datetime | None) -> Strip:
    """One number through time: nothing said, consented, withdrawn."""
    whole = max(1.0, (end - start).total_seconds())

    def place(moment: datetime) -> float:
        return min(max((moment - start).total_seconds() / whole, 0.0), 1.0) * STRIP_WIDTH

    spans = []
    edges = [start, *(change.at for change in changes), end]
    kinds = ["none", *("yes" if change.is_opt_in else "no" for change in changes)]
    for kind, begin, finish in zip(kinds, edges[:-1], edges[1:], strict=True):
        width = place(finish) - place(begin)
        if width > 0:
            spans.append(Span(_c(place(begin) + 0.5), _c(max(width - 1, 0.75)), kind))
    if asked is None:
        return Strip(spans, None, "middle")
    x = place(asked)
    anchor = "start" if x < STRIP_WIDTH * 0.15 else "end" if x > STRIP_WIDTH * 0.85 else "middle"
    return Strip(spans, _c(x), anchor)


def _percent(value: float) -> str:
    return f"{value:.2f}%"


def _c(value: float) -> str:
    return f"{value:.1f}"
