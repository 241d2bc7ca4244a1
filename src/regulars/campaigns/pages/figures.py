"""Loads and formats the estimate of a campaign (recipients, cost, effect) and previews of its text, for the editor and
the confirmation page."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from regulars.campaigns.definition import Definition
from regulars.campaigns.estimate import Estimate, estimate
from regulars.campaigns.pages.common import VARIANT_LETTERS
from regulars.campaigns.pages.definition_form import HOLDOUTS
from regulars.campaigns.preview import Preview, PreviewedCustomers, preview
from regulars.campaigns.text_sizes import VariantSize
from regulars.columns.client import Analysis
from regulars.columns.protocol import AnalysisUnavailable, NotReady
from regulars.experiments.effect import SmallestEffect
from regulars.segments.audience import AudienceRefused
from regulars.texts.cost import CostEstimate
from regulars.texts.template import TemplateError
from regulars.web import mask
from regulars.web.charts import stack_sections
from regulars.web.format import Format
from regulars.web.visit import Visit

# A page waits this long for the estimate. Then it is rendered without the estimate, and the browser requests it again.
AT_ONCE_S: Final = 1.0
COUNTING: Final = "We are counting the audience."
_PREVIEW: Final = re.compile(r"([a-z_]{1,32}) ([1-4]) ([0-9]{1,3})")
_MINUTE_S: Final = 60


class BarPart(NamedTuple):
    """A part of the audience: its label and number, its section of the bar chart, and the CSS classes of the section
    and of the legend."""

    label: str
    number: int
    bar_class: str
    legend_class: str
    x: float
    width: float


class HoldoutOption(NamedTuple):
    """A percentage that the form offers; `effect` describes the smallest effect that it can show."""

    value: int
    held_out: int | None
    effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The estimate, or why it is unavailable; with `is_waiting` the page requests it again soon."""

    estimate: Estimate | None = None
    unavailable_reason: str | None = None
    is_waiting: bool = False


async def load_figures(
    visit: Visit, analysis: Analysis, definition: Definition, *, seconds: float = AT_ONCE_S
) -> Figures:
    """Load the estimate. After `seconds` the page stops waiting, and a later request gets the result."""
    try:
        async with asyncio.timeout(seconds):
            loaded = await estimate(visit.database, analysis, visit.organization_id, definition, with_spend=True)
    except TimeoutError:
        return Figures(unavailable_reason=COUNTING, is_waiting=True)
    except NotReady as error:
        return Figures(unavailable_reason=str(error), is_waiting=True)
    except (AudienceRefused, AnalysisUnavailable) as error:
        return Figures(unavailable_reason=str(error))
    return Figures(estimate=loaded)


class PreviewChoice(NamedTuple):
    """Which customers the preview shows, with which variant; another seed shows other customers."""

    which: PreviewedCustomers = PreviewedCustomers.RANDOM
    variant: int = 1
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.which.value} {self.variant} {self.seed}"


def read_preview(values: Mapping[str, str], definition: Definition) -> PreviewChoice:
    """Read the choice, such as `longest 1 0`, from the button that was pressed, or else from the previous preview."""
    match = _PREVIEW.fullmatch(values.get("preview") or values.get("previewed", ""))
    if match is None or match[1] not in set(PreviewedCustomers):
        return PreviewChoice()
    return PreviewChoice(
        PreviewedCustomers(match[1]), min(int(match[2]), max(len(definition.variants), 1)), int(match[3])
    )


async def load_previews(
    visit: Visit, analysis: Analysis, definition: Definition, choice: PreviewChoice
) -> list[Preview]:
    """Load the previews; empty if they take too long or a text has a fault, which the page shows elsewhere."""
    hidden = None if visit.sees_personal else mask.HIDDEN
    try:
        async with asyncio.timeout(AT_ONCE_S):
            return await preview(
                visit.database,
                analysis,
                visit.organization_id,
                definition,
                choice.which,
                variant=choice.variant,
                seed=choice.seed,
                hidden=hidden,
            )
    except (TimeoutError, NotReady, AudienceRefused, AnalysisUnavailable, TemplateError):
        return []


def list_audience_parts(estimate: Estimate) -> list[BarPart]:
    """The customers of the segments, divided into the parts of one bar: who gets the text, and why others do not."""
    # The customers of the segments by their consent.
    split = estimate.counts.split
    parts = (
        ("Get the text", estimate.gets_text - estimate.reach.later, "c1", ""),
        ("Get it after the start", estimate.reach.later, "c3", "is-3"),
        ("No text: stopped by a rule below", estimate.reach.skipped, "c2", "is-2"),
        ("No text: holdout", estimate.held_out, "c5", "is-5"),
        ("No text: global holdout", estimate.global_holdout, "line", "is-line"),
        ("No text: never asked for consent", split.never_asked, "past", "is-past"),
        ("No text: opted out", split.withdrawn, "c4", "is-4"),
        ("No text: do not contact", split.do_not_contact, "blocked", "is-blocked"),
    )
    sections = stack_sections([number for _, number, _, _ in parts])
    return [BarPart(*part, *section) for part, section in zip(parts, sections, strict=True)]


def list_holdout_options(formats: Format, estimate: Estimate | None) -> list[HoldoutOption]:
    """The offered percentages, each with the number of customers held out and the smallest effect that it can show."""
    choices = {} if estimate is None else {choice.percent: choice for choice in estimate.holdouts}
    options = []
    for percent in HOLDOUTS:
        choice = choices.get(percent)
        effect = "none" if not percent else "" if choice is None else describe_effects(formats, choice.effects)
        options.append(HoldoutOption(percent, None if choice is None else choice.held_out, effect))
    return options


def describe_chosen_effect(formats: Format, estimate: Estimate | None, percent: int) -> str:
    """Sentences about the smallest effect that a holdout of this percentage can show."""
    choice = None if estimate is None else next((it for it in estimate.holdouts if it.percent == percent), None)
    if choice is None or not choice.effects:
        return ""
    sentences = []
    for effect in choice.effects:
        spent = formats.money(round(effect.mean_cents), effect.currency)
        if effect.cents is None:
            sentences.append(f"In {effect.currency} too few customers buy to show an effect.")
        else:
            smallest = formats.money(round(effect.cents), effect.currency)
            percentage = "" if effect.percent is None else f" (+{effect.percent:.0f}%)"
            sentences.append(f"They spend {spent} in 7 days. The comparison can detect {smallest} more{percentage}.")
    return " ".join(sentences)


def describe_effects(formats: Format, effects: Sequence[SmallestEffect]) -> str:
    amounts = [
        f"{effect.currency}: too few" if effect.cents is None else formats.money(round(effect.cents), effect.currency)
        for effect in effects
    ]
    return ", ".join(amounts) or "no sales to compare"


def describe_spread(formats: Format, size: VariantSize) -> str:
    """How many texts have how many SMS parts, such as `2,339 with 1 SMS part and 16 with 2 SMS parts`."""
    return " and ".join(
        f"{formats.number(texts)} with {formats.count(parts, 'SMS part')}" for parts, texts in size.spread.items()
    )


def describe_duration(duration: timedelta | None) -> str:
    if duration is None:
        return "as fast as the provider accepts them"
    minutes = max(round(duration.total_seconds() / _MINUTE_S), 1)
    hours, minutes = divmod(minutes, _MINUTE_S)
    return f"about {hours} h {minutes:02d} min" if hours else f"about {minutes} min"


def list_unpriced(formats: Format, cost: CostEstimate) -> list[str]:
    """The names of the countries that get texts and have no price."""
    return sorted(formats.locale.territories.get(it, it or "No country") for it in cost.parts_without_price)


def describe_estimate(formats: Format, estimate: Estimate) -> dict[str, object]:
    """The template values of an estimate."""
    return {
        "parts": list_audience_parts(estimate),
        "cost": formats.amounts(estimate.size.cost.amounts),
        "without_price": list_unpriced(formats, estimate.size.cost),
        "duration": describe_duration(estimate.duration),
        "countries": [
            (
                formats.locale.territories.get(it.country, it.country or "No country"),
                it.recipients,
                it.parts,
                None if it.price is None or it.cost is None else formats.money(round(it.cost * 100), it.price.currency),
                None if it.price is None else formats.price(it.price.amount, it.price.currency),
            )
            for it in estimate.size.countries
        ],
        "variants": [
            (letter, size, describe_spread(formats, size))
            for letter, size in zip(VARIANT_LETTERS, estimate.size.variants, strict=False)
        ],
        "between": describe_effects(formats, estimate.between_variants) if estimate.between_variants else "",
    }
