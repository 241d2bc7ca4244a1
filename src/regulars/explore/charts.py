"""The geometry of charts: bars per day, a sparkline, hours of a store, and a number's consent over time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

# Widths are in per cent, so that the text is not scaled with the chart.
WIDTH_PERCENT: Final = 100.0
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
    """Bars from 0. A negative value is drawn below the axis in the colour of returns."""
    top = nice_top(max([*values, 0.0]))
    slot = WIDTH_PERCENT / max(1, len(values))
    bars = []
    for n, value in enumerate(values):
        height = min(abs(value) / top * (FLOOR - TOP), FLOOR - TOP)
        y = FLOOR - height if value >= 0 else FLOOR
        is_open = is_last_open and n == len(values) - 1
        kind = "c4" if value < 0 else "c1 is-open" if is_open else "c1"
        x = slot * (n + 0.16)
        bars.append(Bar(_percent(x), _c(y), _percent(slot * 0.68), _c(max(height, 0.0)), kind, titles[n]))
    rules = [
        Rule(_c(y), _c(y + 4), short(top * share)) for share in (0, 0.5, 1) for y in [FLOOR - share * (FLOOR - TOP)]
    ]
    every = max(1, math.ceil(len(values) / LABELS_MAX))
    drawn = [Label(_percent(slot * (n + 0.5)), text) for n, text in enumerate(labels) if n % every == 0]
    return Chart(bars, rules, drawn)


def nice_top(value: float) -> float:
    """The next round number above the value, for the top of the axis. Half of it is a whole number where possible,
    because the axis has a mark there."""
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
    """The points of a line without an axis; it need not start at 0."""
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
    """Tickets per hour of a store, and a thin mark for an hour that usually has tickets and has none."""
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
    """A period of one consent state."""

    x: str
    width: str
    kind: str


class Change(NamedTuple):
    at: datetime
    is_opt_in: bool


@dataclass(frozen=True, slots=True)
class Strip:
    spans: list[Span]
    marked_x: str | None
    marked_anchor: str


def consent_strip(changes: Sequence[Change], *, start: datetime, end: datetime, marked_at: datetime | None) -> Strip:
    """The consent of a number over time: none, given, withdrawn. `marked_at` gets a line."""
    whole = max(1.0, (end - start).total_seconds())

    def x_of(moment: datetime) -> float:
        return min(max((moment - start).total_seconds() / whole, 0.0), 1.0) * STRIP_WIDTH

    spans = []
    edges = [start, *(change.at for change in changes), end]
    kinds = ["none", *("yes" if change.is_opt_in else "no" for change in changes)]
    for kind, begin, finish in zip(kinds, edges[:-1], edges[1:], strict=True):
        width = x_of(finish) - x_of(begin)
        if width > 0:
            spans.append(Span(_c(x_of(begin) + 0.5), _c(max(width - 1, 0.75)), kind))
    if marked_at is None:
        return Strip(spans, None, "middle")
    x = x_of(marked_at)
    anchor = "start" if x < STRIP_WIDTH * 0.15 else "end" if x > STRIP_WIDTH * 0.85 else "middle"
    return Strip(spans, _c(x), anchor)


def _percent(value: float) -> str:
    return f"{value:.2f}%"


def _c(value: float) -> str:
    return f"{value:.1f}"
