"""Formats the lift of texts (extra net sales, measured against a holdout) for pages: its state as a badge, and the
amount with its interval, or why there is none."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from regulars.attribution.lift import Lift, LiftState, measured_of, merge_months, summarise
from regulars.experiments.effect import BUYERS_MIN, EffectEstimate
from regulars.web.charts import Whisker, WhiskerAxis, whisker_axis
from regulars.web.format import Format

# Label, kind of badge, icon.
_BADGES: Final = {
    "final": ("Final", "yes", "check"),
    "provisional": ("Provisional", "pending", "pending"),
    "unclear": ("No effect shown", "none", "none"),
    "open": ("Window open", "info", "clock"),
    "computing": ("Being computed", "info", "pending"),
    "too_few": ("Too few", "warn", "alert"),
    "outside": ("Outside period", "none", "calendar"),
    "no_holdout": ("No holdout", "none", "blocked"),
    "no_text": ("No text was sent", "none", "none"),
}
_ALARM: Final = "the sizes of the groups differ more than chance explains"
_RESULT_ON: Final = "result on "
# What the column of the extra net shows in states without a result.
_PLACEHOLDERS: Final = {
    "open": "not yet", "too_few": "not measured", "outside": "not in this period", "no_holdout": "not measured",
    "no_text": "not measured",
}  # fmt: skip


class LiftView(NamedTuple):
    """One lift, or the sum of several, as a page shows it."""

    state: str
    # The label, the kind and the icon of the badge.
    label: str
    kind: str
    symbol: str
    note: str
    placeholder: str = ""
    estimate: EffectEstimate | None = None
    extra: str = ""
    low: str = ""
    high: str = ""
    # The extra net and its interval as text, for a screen reader.
    aria_label: str = ""
    is_provisional: bool = False
    # Whether the sizes of the groups cannot be explained by chance.
    has_alarm: bool = False

    @property
    def is_computing(self) -> bool:
        return self.label == _BADGES["computing"][0]

    @property
    def result_on(self) -> str:
        """The day of the first result for a sentence, such as ", result on 25 Nov"; empty if it is not known."""
        return f", {self.note}" if self.note.startswith(_RESULT_ON) else ""

    @property
    def is_unclear(self) -> bool:
        """Whether zero is inside the interval."""
        return self.estimate is not None and not self.estimate.is_shown

    @property
    def values(self) -> list[float]:
        """The estimate, and the low and high end of its interval, in units of the currency."""
        return [] if self.estimate is None else [cents / 100 for cents in in_cents(self.estimate)]

    def mark(self, axis: WhiskerAxis | None) -> Whisker | None:
        """The estimate and its interval, drawn on a chart axis."""
        return None if self.estimate is None or axis is None else axis.draw(*self.values)


def in_cents(estimate: EffectEstimate) -> tuple[float, float, float]:
    """The estimate, and the low and high end of its interval, in cents."""
    return estimate.value, estimate.low, estimate.high


class Verdict(NamedTuple):
    """The summed estimate of the measured lifts; or, without an estimate, the state and the lifts that explain why."""

    state: str
    lifts: Sequence[Lift]
    estimate: EffectEstimate | None = None
    is_provisional: bool = False

    @property
    def measured(self) -> Sequence[Lift]:
        return () if self.estimate is None else self.lifts

    @property
    def has_alarm(self) -> bool:
        return any(it.has_sample_ratio_alarm for it in self.lifts)


def judge(lifts: Sequence[Lift], currency: str) -> Verdict:
    """Sum the lifts that were measured in this currency, or find out why none was."""
    merged = merge_months(lifts, currency)
    summary = summarise(merged, currency)
    extra, is_provisional = summary.extra_cents, summary.state == "provisional"
    if extra is not None:
        state = summary.state if extra.is_shown else "unclear"
        return Verdict(state, measured_of(merged, currency), extra, is_provisional)
    return Verdict(summary.state, [it for it in merged if summary.state != "open" or it.state is LiftState.OPEN])


def view_lifts(formats: Format, lifts: Sequence[Lift], currency: str) -> LiftView:
    return view_verdict(formats, judge(lifts, currency), currency)


class PeriodLine(NamedTuple):
    """The lift of a month of a split step, or of a quarter; `mark` is its estimate and interval in a chart of all
    periods."""

    name: str
    step: str
    lift: LiftView
    mark: Whisker | None


def view_periods(
    formats: Format,
    lifts: Iterable[Lift],
    currency: str,
    *,
    name_period: Callable[[str], str] = str,
    limit: int | None = None,
) -> list[PeriodLine]:
    """The lifts by the period and the step of their source, the newest `limit` periods first."""
    by_period: dict[str, dict[str, list[Lift]]] = {}
    for lift in lifts:
        by_period.setdefault(lift.source.period, {}).setdefault(lift.source.step, []).append(lift)
    views = {
        (period, step): view_lifts(formats, by_period[period][step], currency)
        for period in sorted(by_period, reverse=True)[:limit]
        for step in sorted(by_period[period])
    }
    values = [value for view in views.values() for value in view.values]
    axis = whisker_axis(values) if values else None
    return [PeriodLine(name_period(period), step, view, view.mark(axis)) for (period, step), view in views.items()]


def view_verdict(formats: Format, verdict: Verdict, currency: str) -> LiftView:
    if verdict.estimate is not None:
        return _view_estimate(formats, verdict, verdict.estimate, currency)
    badge, note = verdict.state, "extra sales unknown"
    if verdict.state == "open":
        badge, note = _describe_wait(formats, verdict.lifts)
    elif verdict.state == "too_few":
        expected = max((it.expected_buyers for it in verdict.lifts if it.currency == currency), default=0.0)
        note = f"{formats.number(int(expected))} buyers in the smaller group, {BUYERS_MIN} needed"
    elif verdict.state == "outside":
        note = "the result covers other days too"
    elif verdict.state == "no_text":
        note = "nothing to measure"
    if verdict.has_alarm:
        note = f"{note}; {_ALARM}"
    return LiftView(verdict.state, *_BADGES[badge], note, _PLACEHOLDERS[verdict.state], has_alarm=verdict.has_alarm)


def _describe_wait(formats: Format, lifts: Sequence[Lift]) -> tuple[str, str]:
    """The badge, and when the first result is expected: shortly after the first window closes."""
    last_day = min((it.last_day for it in lifts if it.last_day is not None), default=None)
    if last_day is None:
        return "open", "sales still come in"
    if last_day < formats.today:
        return "computing", "result follows shortly"
    return "open", f"{_RESULT_ON}{formats.day(last_day + timedelta(days=1))}"


def _view_estimate(formats: Format, verdict: Verdict, extra: EffectEstimate, currency: str) -> LiftView:
    note = ""
    if verdict.is_provisional and (days := [day for it in verdict.lifts if (day := it.final_on) is not None]):
        note = f"final {formats.day(max(days))}"
    if verdict.state == "unclear":
        note = f"provisional, {note}" if note else "final"
    if verdict.has_alarm:
        note = _ALARM
    texts = [formats.money_change(value, currency) for value in in_cents(extra)]
    return LiftView(
        verdict.state,
        *_BADGES[verdict.state],
        note,
        estimate=extra,
        extra=texts[0],
        low=texts[1],
        high=texts[2],
        aria_label=f"{texts[0]}, between {texts[1]} and {texts[2]}",
        is_provisional=verdict.is_provisional,
        has_alarm=verdict.has_alarm,
    )
