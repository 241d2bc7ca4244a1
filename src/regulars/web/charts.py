"""Compute the positions of chart elements for SVG: bars, a sparkline, tickets per hour, consent over time, and the
confidence interval of an estimate."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

# Horizontal positions of bar charts are in per cent, so that labels are not stretched with the chart. Vertical
# positions are in pixels: `TOP` for the highest value of the axis and `BOTTOM` for the lowest.
WIDTH_PERCENT: Final = 100.0
TOP: Final = 8.0
BOTTOM: Final = 144.0
# The top of an axis is one of these times a power of ten.
AXIS_TOPS: Final = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
LABELS_MAX: Final = 6
# Pixels between the baselines of two labels of the vertical axis.
LABEL_DISTANCE_MIN: Final = 12.0
# Characters of a name on the axis: more would overlap the next name on a phone.
LABEL_CHARACTERS_MAX: Final = 9
SPARKLINE_WIDTH: Final = 160.0
SPARKLINE_HEIGHT: Final = 32.0
STRIP_WIDTH: Final = 328.0
WHISKER_MARGIN_PERCENT: Final = 3.0
_THOUSAND: Final = 1000
_MILLION: Final = 1_000_000


class Bar(NamedTuple):
    """A bar; its kind is a CSS class: `c1` to `c4` are the colours, `is-open` a period that has not ended."""

    x: str
    y: str
    width: str
    height: str
    kind: str
    title: str


class GridLine(NamedTuple):
    y: str
    text_y: str
    label: str


class AxisLabel(NamedTuple):
    x: str
    text: str


class Step(NamedTuple):
    """The value of the compared period: a horizontal line over one bar, from `x` to `end_x`, and the vertical line to
    the next bar's value at `next_y`."""

    x: str
    end_x: str
    y: str
    next_y: str | None


class Mark(NamedTuple):
    """A pale background behind a bar, and its label, such as the name of a public holiday."""

    x: str
    width: str
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    bars: list[Bar]
    grid_lines: list[GridLine]
    labels: list[AxisLabel]
    steps: list[Step] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The vertical axis of a bar chart, from `low`, which is 0 or less, to `top`."""

    low: float
    top: float

    def y_of(self, value: float) -> float:
        share = (min(max(value, self.low), self.top) - self.low) / (self.top - self.low)
        return BOTTOM - share * (BOTTOM - TOP)

    def grid_lines(self) -> list[GridLine]:
        """Lines at 0, at both ends, and at half of the top; a line whose label would overlap an earlier one is left
        out."""
        values: list[float] = []
        for value in (0.0, self.top / 2, self.top, self.low):
            if all(abs(self.y_of(value) - self.y_of(other)) >= LABEL_DISTANCE_MIN for other in values):
                values.append(value)
        # The baseline of a label is 4 pixels below its line.
        return [
            GridLine(_coordinate(y), _coordinate(y + 4), shorten(value)) for value in values for y in [self.y_of(value)]
        ]


def bar_chart(
    values: Sequence[float],
    *,
    titles: Sequence[str],
    labels: Sequence[str],
    is_last_partial: bool,
    compared: Sequence[float | None] = (),
    marked: Mapping[int, str] | None = None,
) -> Chart:
    """Bars from 0. A negative value is drawn below the axis in the colour of returns.

    `compared` has the value of an earlier period for each bar. `marked` has the labels of bars with a pale background,
    by the number of the bar.
    """
    axis = _axis([*values, *(value for value in compared if value is not None)])
    slot = WIDTH_PERCENT / max(1, len(values))
    bars = []
    for n, value in enumerate(values):
        is_open = is_last_partial and n == len(values) - 1
        kind = "c4" if value < 0 else "c1 is-open" if is_open else "c1"
        bars.append(_bar(axis, n, slot, start=0.0, end=value, kind=kind, title=titles[n]))
    return Chart(
        bars,
        axis.grid_lines(),
        _labels(labels, slot),
        _steps(axis, compared, slot),
        [Mark(_percent(slot * n), _percent(slot), name) for n, name in (marked or {}).items()],
    )


def stacked_chart(
    series: Sequence[Sequence[float]], *, titles: Sequence[Sequence[str]], labels: Sequence[str], is_last_partial: bool
) -> Chart:
    """Stacked bars, the first series at the bottom. Values are not negative."""
    sums = [sum(parts) for parts in zip(*series, strict=True)]
    axis = _axis(sums)
    slot = WIDTH_PERCENT / max(1, len(sums))
    bars = []
    for n in range(len(sums)):
        bottom = 0.0
        is_open = is_last_partial and n == len(sums) - 1
        for number, heights in enumerate(series):
            kind = f"c{number + 1}{' is-open' if is_open else ''}"
            bars.append(_bar(axis, n, slot, start=bottom, end=bottom + heights[n], kind=kind, title=titles[number][n]))
            bottom += heights[n]
    return Chart(bars, axis.grid_lines(), _labels(labels, slot))


def _axis(values: Sequence[float]) -> _Axis:
    low = min([*values, 0.0])
    return _Axis(-nice_top(-low) if low < 0 else 0.0, nice_top(max([*values, 0.0])))


def _bar(axis: _Axis, n: int, slot: float, *, start: float, end: float, kind: str, title: str) -> Bar:
    # A bar takes the middle 68 % of its slot.
    y = axis.y_of(max(start, end))
    height = axis.y_of(min(start, end)) - y
    return Bar(_percent(slot * (n + 0.16)), _coordinate(y), _percent(slot * 0.68), _coordinate(height), kind, title)


def _labels(labels: Sequence[str], slot: float) -> list[AxisLabel]:
    every = max(1, math.ceil(len(labels) / LABELS_MAX))
    return [AxisLabel(_percent(slot * (n + 0.5)), text) for n, text in enumerate(labels) if n % every == 0]


def _steps(axis: _Axis, compared: Sequence[float | None], slot: float) -> list[Step]:
    heights = [None if value is None else _coordinate(axis.y_of(value)) for value in compared]
    return [
        Step(_percent(slot * n), _percent(slot * (n + 1)), y, following)
        for n, (y, following) in enumerate(pairwise([*heights, None]))
        if y is not None
    ]


def short_label(name: str) -> str:
    """The beginning of a name, such as that of a store, below its bar."""
    return name.partition(" ")[0][:LABEL_CHARACTERS_MAX]


def nice_top(value: float) -> float:
    """The next round number above the value, for the top of the axis. Half of it is an integer if possible, because a
    grid line is drawn there."""
    if value <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    tops = [top * size for top in AXIS_TOPS if top * size >= value]
    return next((top for top in tops if (top / 2).is_integer()), tops[0])


def shorten(value: float) -> str:
    """A number for the axis, such as 1.5k or 2M."""
    if abs(value) >= _MILLION:
        text = f"{value / _MILLION:g}M"
    else:
        text = f"{value / _THOUSAND:g}k" if abs(value) >= _THOUSAND else f"{value:g}"
    return text.replace("-", "\N{MINUS SIGN}")


def sparkline(values: Sequence[float]) -> str:
    """The points of a line without an axis; it need not start at 0."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = SPARKLINE_WIDTH / max(1, len(values) - 1)
    # The line has a margin of 4 pixels above and below.
    return " ".join(
        f"{_coordinate(n * step)},{_coordinate(SPARKLINE_HEIGHT - 4 - (value - low) / span * (SPARKLINE_HEIGHT - 8))}"
        for n, value in enumerate(values)
    )


class HourColumn(NamedTuple):
    """The bar of one hour in the small chart of a store's day; its kind is a CSS class."""

    x: int
    y: str
    height: str
    kind: str


def hour_columns(tickets: Sequence[int], usual: Sequence[float]) -> list[HourColumn]:
    """Bars for the tickets of each hour, 7 pixels apart and up to 18 high; a thin line for an hour without tickets that
    usually has some."""
    top = max([*tickets, *usual, 1])
    columns = []
    for n, (count, expected) in enumerate(zip(tickets, usual, strict=True)):
        if count:
            height = max(1.0, count / top * 18)
            columns.append(HourColumn(7 * n, _coordinate(18 - height), _coordinate(height), "c1"))
        elif expected:
            columns.append(HourColumn(7 * n, "17.0", "1.0", "past"))
    return columns


class Span(NamedTuple):
    """A period of one consent state."""

    x: str
    width: str
    kind: str


class ConsentChange(NamedTuple):
    at: datetime
    is_opt_in: bool


@dataclass(frozen=True, slots=True)
class Strip:
    """A horizontal strip with the consent states of a number over time, and the position of one marked time."""

    spans: list[Span]
    marked_x: str | None
    marked_anchor: str


def consent_strip(
    changes: Sequence[ConsentChange], *, start: datetime, end: datetime, marked_at: datetime | None
) -> Strip:
    """The periods without consent, with consent, and after an opt-out. `marked_at` gets a vertical line."""
    length_s = max(1.0, (end - start).total_seconds())

    def x_of(moment: datetime) -> float:
        return min(max((moment - start).total_seconds() / length_s, 0.0), 1.0) * STRIP_WIDTH

    spans = []
    edges = [start, *(change.at for change in changes), end]
    kinds = ["none", *("yes" if change.is_opt_in else "no" for change in changes)]
    for kind, begin, finish in zip(kinds, edges[:-1], edges[1:], strict=True):
        width = x_of(finish) - x_of(begin)
        if width > 0:
            # One pixel between two periods; a short period is still visible.
            spans.append(Span(_coordinate(x_of(begin) + 0.5), _coordinate(max(width - 1, 0.75)), kind))
    if marked_at is None:
        return Strip(spans, None, "middle")
    x = x_of(marked_at)
    anchor = "start" if x < STRIP_WIDTH * 0.15 else "end" if x > STRIP_WIDTH * 0.85 else "middle"
    return Strip(spans, _coordinate(x), anchor)


def stack_sections(numbers: Sequence[int]) -> list[tuple[float, float]]:
    """The left end and the width of each section of a bar, in percent of the bar."""
    total = sum(numbers) or 1
    widths = [round(100 * number / total, 2) for number in numbers]
    return [(round(x, 2), width) for x, width in zip(accumulate(widths, initial=0.0), widths, strict=False)]


class Whisker(NamedTuple):
    """The positions of zero, of an estimate, and of both ends of its confidence interval, on the axis of all rows."""

    zero: str
    low: str
    at: str
    high: str


@dataclass(frozen=True, slots=True)
class WhiskerAxis:
    """The horizontal axis of estimates, from `low`, which is 0 or less, to `top`; a margin on both sides has room for
    the dots."""

    low: float
    top: float

    def x_of(self, value: float) -> float:
        share = (value - self.low) / (self.top - self.low)
        return WHISKER_MARGIN_PERCENT + share * (WIDTH_PERCENT - 2 * WHISKER_MARGIN_PERCENT)

    def draw(self, estimate: float, low: float, high: float) -> Whisker:
        return Whisker(*(_percent(self.x_of(value)) for value in (0.0, low, estimate, high)))

    def bar(self, value: float) -> tuple[str, str]:
        """The left end and the width of a bar from 0 to the value."""
        ends = sorted((self.x_of(0.0), self.x_of(value)))
        return _percent(ends[0]), _percent(ends[1] - ends[0])

    def labels(self) -> list[AxisLabel]:
        values = [0.0, self.top / 2, self.top]
        return [AxisLabel(_percent(self.x_of(value)), f"{'+' if value else ''}{shorten(value)}") for value in values]


def whisker_axis(values: Sequence[float]) -> WhiskerAxis:
    """An axis that has room for all values, such as both ends of each interval."""
    return WhiskerAxis(min([*values, 0.0]), _axis(values).top)


def _percent(value: float) -> str:
    return f"{value:.2f}%"


def _coordinate(value: float) -> str:
    return f"{value:.1f}"
