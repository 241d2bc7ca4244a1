"""The answer of a page: of what is attributed, how much was extra. One sentence a currency."""

from typing import Final, NamedTuple

from regulars.attribution.pages.lift_view import LiftView
from regulars.segments.effect import Estimate
from regulars.web.charts import Whisker, whisker_axis
from regulars.web.format import Format

HUNDRED_CENTS: Final = 100_00


class Headline(NamedTuple):
    """`attributed` is of what was measured, where anything was."""

    currency: str
    scope: str
    lead: str
    more: str
    attributed: str
    tickets_url: str
    cost: str
    left_out: str = ""
    url: str = ""
    extra: str = ""
    low: str = ""
    high: str = ""
    words: str = ""
    mark: Whisker | None = None
    # Where the bar of the attributed net begins, and its width.
    bar: tuple[str, str] = ("", "")
    is_unclear: bool = False
    is_provisional: bool = False


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
) -> Headline:
    """`attributed_cents` are of all rows, `measured_cents` of those with an interval."""
    if lift.estimate is None:
        lead, more = _describe_unmeasured(lift)
        attributed = formats.money_rounded(attributed_cents, currency)
        return Headline(currency, scope, lead, more, attributed, tickets_url, cost, url=url)
    lead, more = _describe_ratio(formats, currency, lift, lift.estimate, measured_cents)
    attributed = formats.money_rounded(measured_cents, currency)
    axis = whisker_axis([*lift.values, measured_cents / 100])
    rest = attributed_cents - measured_cents
    left_out = (
        f"{formats.money_rounded(rest, currency)} more is attributed to texts that have no result by holdout;"
        " it is not included."
        if rest
        else ""
    )
    return Headline(
        currency,
        scope,
        lead,
        more,
        attributed,
        tickets_url,
        cost,
        left_out,
        url,
        lift.extra,
        lift.low,
        lift.high,
        f"Attributed {attributed}; extra {lift.words}",
        lift.mark(axis),
        axis.bar(measured_cents / 100),
        is_unclear=lift.is_unclear,
        is_provisional=lift.is_provisional,
    )


def _describe_unmeasured(lift: LiftView) -> tuple[str, str]:
    """Why attributed net stands alone."""
    if lift.state == "open":
        return "No result yet", "Sales are still counted. What was extra is known when the window closes."
    if lift.state == "too_few":
        return "Too few buyers to tell", f"{lift.note[:1].upper()}{lift.note[1:]}."
    return "What was extra is not known", "Without a holdout, it cannot be told what would have been bought anyway."


def _describe_ratio(
    formats: Format, currency: str, lift: LiftView, estimate: Estimate, measured_cents: int
) -> tuple[str, str]:
    if not estimate.is_shown:
        more = f"The extra net is between {lift.low} and {lift.high}. Zero is possible, so no extra sales are shown."
        return "No effect could be shown", f"{more} It does not prove that the texts do nothing."
    if estimate.value < 0:
        return f"The texts cost sales: {lift.extra}", f"The range is {lift.low} to {lift.high} (95%)."
    if measured_cents < estimate.value:
        more = f"That is more than is attributed to them. The range is {lift.low} to {lift.high} (95%)."
        return f"The texts brought {lift.extra} extra", more
    hundred = formats.money_whole(HUNDRED_CENTS, currency)
    shares = [HUNDRED_CENTS * value / measured_cents for value in (estimate.value, estimate.low, estimate.high)]
    extra, low, high = (formats.money_whole(share, currency) for share in shares)
    rest = formats.money_whole(HUNDRED_CENTS - shares[0], currency)
    more = f"The other {rest} would have been spent without a text. The range is {low} to {high} (95%)."
    return f"Of {hundred} attributed, {extra} were extra", more
