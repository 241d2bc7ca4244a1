"""Writes the headline of an attribution page, one for each currency: how much of the net sales attributed to texts was
extra, that is, would not have been bought without a text."""

from typing import Final, NamedTuple

from regulars.attribution.pages.lift_view import LiftView
from regulars.experiments.effect import EffectEstimate
from regulars.web.charts import Whisker, whisker_axis
from regulars.web.format import MINUS, Format

# 100 euros in cents, for example: the headline says how much of 100 attributed was extra.
HUNDRED_CENTS: Final = 100_00


class Headline(NamedTuple):
    """`attributed` is the net of the measured texts, or of all texts if none was measured."""

    currency: str
    lift: LiftView
    # Which results the headline covers, its sentence, and the explanation below the sentence.
    scope: str
    lead: str
    explanation: str
    attributed: str
    tickets_url: str
    cost: str
    # A sentence about attributed net that was not measured.
    not_included: str = ""
    url: str = ""
    # Describes the chart for a screen reader.
    aria_label: str = ""
    # The extra net and its interval in the chart.
    mark: Whisker | None = None
    # Where the bar of the attributed net begins in the chart, and its width.
    bar: tuple[str, str] = ("", "")


def write_headline(
    formats: Format,
    currency: str,
    lift: LiftView,
    *,
    scope: str,
    attributed_cents: int,
    measured_cents: int,
    cost: str,
    tickets_url: str,
    url: str = "",
    covers_many: bool = False,
    leaves_out: bool = False,
) -> Headline:
    """`attributed_cents` is the net of all texts, `measured_cents` the part of texts whose extra net was measured;
    `covers_many` says that a table below the headline has a row for each campaign, journey or month, and `leaves_out`
    that results are left out because they cover days outside the period."""
    if lift.estimate is None:
        lead, explanation = _describe_unmeasured(lift, covers_many=covers_many)
        attributed = formats.money_rounded(attributed_cents, currency)
        return Headline(currency, lift, scope, lead, explanation, attributed, tickets_url, cost, url=url)
    lead, explanation = _describe_ratio(formats, currency, lift, lift.estimate, measured_cents)
    attributed = formats.money_rounded(measured_cents, currency)
    axis = whisker_axis([*lift.values, measured_cents / 100])
    unmeasured_cents = attributed_cents - measured_cents
    not_included = (
        f"{formats.money_rounded(unmeasured_cents, currency)} more is attributed to texts without a result"
        f"{', or with a result that covers days outside this period' if leaves_out else ''}. It is not included."
        if unmeasured_cents
        else ""
    )
    return Headline(
        currency,
        lift,
        scope,
        lead,
        explanation,
        attributed,
        tickets_url,
        cost,
        not_included,
        url,
        f"Attributed {attributed}; extra {lift.aria_label}",
        lift.mark(axis),
        axis.bar(measured_cents / 100),
    )


def _describe_unmeasured(lift: LiftView, *, covers_many: bool) -> tuple[str, str]:
    """The headline's sentence, and the explanation why the extra net is not shown."""
    if lift.state == "open":
        lead = "Extra sales are not known yet"
        if lift.is_computing and covers_many:
            return lead, "The first result follows shortly. The table below shows the state of each row."
        if lift.is_computing:
            return lead, "The days in which sales count (the window) are over. The result follows shortly."
        return lead, f"Sales still come in. Extra sales are known when the window closes{lift.result_on}."
    if lift.state == "too_few":
        return "Too few buyers to tell", f"{lift.note[:1].upper()}{lift.note[1:]}."
    if lift.state == "outside":
        explanation = "A result covers all texts of a campaign, or of a month of a journey. Choose a longer period."
        return "Extra sales are not known for this period", explanation
    if lift.state == "no_text":
        return lift.label, "The campaign ended before its first text, so there is nothing to measure."
    return "Extra sales are not known", "Without a holdout, we cannot know what customers would have bought anyway."


def _describe_ratio(
    formats: Format, currency: str, lift: LiftView, estimate: EffectEstimate, measured_cents: int
) -> tuple[str, str]:
    if not estimate.is_shown:
        explanation = (
            f"The extra sales are between {lift.low} and {lift.high}. Zero is possible, so no effect is shown."
        )
        return "No effect shown", f"{explanation} This does not prove that the texts do nothing."
    if estimate.value < 0:
        return (
            f"The texts cost {lift.extra.removeprefix(MINUS)} of sales",
            f"The range is {lift.low} to {lift.high} (95%).",
        )
    if measured_cents < estimate.value:
        explanation = f"That is more than their attributed sales. The range is {lift.low} to {lift.high} (95%)."
        return f"The texts brought {lift.extra.removeprefix('+')} extra", explanation
    hundred = formats.money_whole(HUNDRED_CENTS, currency)
    per_hundred = [HUNDRED_CENTS * value / measured_cents for value in (estimate.value, estimate.low, estimate.high)]
    extra, low, high = (formats.money_whole(cents, currency) for cents in per_hundred)
    not_extra = formats.money_whole(HUNDRED_CENTS - per_hundred[0], currency)
    explanation = f"The other {not_extra} would have been spent without a text. The range is {low} to {high} (95%)."
    return f"Of {hundred} attributed, {extra} were extra", explanation
