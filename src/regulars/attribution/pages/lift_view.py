"""How a result by holdout is shown: its state in a word, the extra net with its interval, or why there is none."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from regulars.attribution.lift import Lift, LiftState, summarise
from regulars.segments.effect import BUYERS_MIN, Estimate
from regulars.web.charts import Whisker, WhiskerAxis
from regulars.web.format import Format

# Label, kind of badge, icon.
_BADGES: Final = {
    "final": ("Final", "yes", "check"),
    "provisional": ("Provisional", "pending", "pending"),
    "unclear": ("No effect shown", "none", "none"),
    "open": ("Window open", "info", "clock"),
    "few": ("Too few", "warn", "alert"),
    "none": ("No holdout", "none", "blocked"),
}
# What stands in the column of the extra net where there is none.
_WITHOUT: Final = {"open": "not yet", "few": "not measured", "none": "not measured"}


class LiftView(NamedTuple):
    """One result, or the sum of several."""

    state: str
    label: str
    kind: str
    symbol: str
    note: str
    without: str = ""
    estimate: Estimate | None = None
    extra: str = ""
    low: str = ""
    high: str = ""
    # The same for a screen reader.
    words: str = ""
    is_provisional: bool = False

    @property
    def is_unclear(self) -> bool:
        """Zero is inside the interval."""
        return self.estimate is not None and not self.estimate.is_shown

    @property
    def values(self) -> list[float]:
        """The estimate, and the low and high end of its interval, in units of the currency."""
        return [] if self.estimate is None else [cents / 100 for cents in in_cents(self.estimate)]

    def mark(self, axis: WhiskerAxis | None) -> Whisker | None:
        return None if self.estimate is None or axis is None else axis.draw(*self.values)


def in_cents(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def measured(lifts: Sequence[Lift], currency: str) -> list[Lift]:
    """Those with an interval in this currency, also those without a shown effect."""
    return [it for it in lifts if it.currency == currency and it.comparison is not None]


def view_lifts(formats: Format, lifts: Sequence[Lift], currency: str) -> LiftView:
    """The sum of what was measured; otherwise why nothing was."""
    summary = summarise(lifts, currency)
    if summary.extra_cents is not None:
        return _view_estimate(formats, summary.extra_cents, measured(lifts, currency), currency)
    if summary.state == "open":
        last_days = [it.last_day for it in lifts if it.state is LiftState.OPEN and it.last_day is not None]
        note = (
            f"result on {formats.day(min(last_days) + timedelta(days=1))}" if last_days else "sales are still counted"
        )
        return _without("open", note)
    if summary.state == "too_few":
        expected = max((it.expected_buyers for it in lifts if it.currency == currency), default=0.0)
        return _without("few", f"{formats.number(int(expected))} buyers in the smaller group, {BUYERS_MIN} needed")
    return _without("none", "extra net unknown")


def _without(state: str, note: str) -> LiftView:
    return LiftView(state, *_BADGES[state], note, _WITHOUT[state])


def _view_estimate(formats: Format, extra: Estimate, lifts: Sequence[Lift], currency: str) -> LiftView:
    is_provisional = any(it.state is LiftState.PROVISIONAL for it in lifts)
    last = max((it.final_on for it in lifts if it.final_on is not None), default=None)
    note = f"final {formats.day(last)}" if is_provisional and last is not None else ""
    state = "provisional" if is_provisional else "final"
    if not extra.is_shown:
        note = f"provisional, {note}" if note else state
        state = "unclear"
    if any(it.has_sample_ratio_alarm for it in lifts):
        note = "the sizes of the groups differ more than by chance"
    texts = [formats.money_change(value, currency) for value in in_cents(extra)]
    return LiftView(
        state,
        *_BADGES[state],
        note,
        estimate=extra,
        extra=texts[0],
        low=texts[1],
        high=texts[2],
        words=f"{texts[0]}, between {texts[1]} and {texts[2]}",
        is_provisional=is_provisional,
    )
