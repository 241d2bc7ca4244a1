"""Estimates a campaign before it is sent: its recipients, who of them gets the text, its cost, how long it takes, and
the smallest effect that its holdout can show.

The audience is counted exactly. The texts are rendered for a random sample of the customers who may be texted, and
their SMS parts are scaled up by the number of customers in each country.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from regulars.campaigns.audience import resolve_definition
from regulars.campaigns.definition import Definition, SendAtLocalTime
from regulars.campaigns.local_times import find_first_time, find_local_times
from regulars.campaigns.model import end_of, start_of
from regulars.campaigns.reach import Reach, Rule, SampledRecipient, count_reach, find_rule
from regulars.campaigns.rendering import load_values
from regulars.campaigns.text_sizes import AudienceSize, CountrySize, TextGroup, add_up, apportion, size_text
from regulars.columns.client import Analysis
from regulars.columns.protocol import AudienceCounts
from regulars.consent.numbers import find_text_numbers
from regulars.experiments.arms import PERCENT, Variant, split_holdout
from regulars.experiments.effect import SmallestEffect, smallest_effects
from regulars.experiments.holdout.groups import find_holdout_draw
from regulars.kit.db import Database, Tx
from regulars.kit.refusals import NotFound
from regulars.sales.totals.progress import find_time_zone
from regulars.texts.gate import forecast_texts
from regulars.texts.number_location import find_country, locate_number
from regulars.texts.rates import find_rate
from regulars.texts.settings.store import Texting, load_texting
from regulars.texts.sms_encoding import replace_unicode
from regulars.texts.template import TextVariants, replace_outside_variables

# How many customers' texts are rendered.
SAMPLE_MAX: Final = 500
# Percentages of the audience.
HOLDOUTS_OFFERED: Final = (5, 10, 20)


@dataclass(frozen=True, slots=True)
class HoldoutChoice:
    """A share of the audience that gets no text, and per currency the smallest effect that it can show."""

    percent: int
    held_out: int
    effects: tuple[SmallestEffect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    # All customers of the segments, by consent state.
    counts: AudienceCounts
    # How many of the customers who may be texted get a text, and how many this campaign holds out.
    recipients: int
    held_out: int
    # Customers in the organization's global holdout, who are in neither number above; scaled from the sample.
    global_holdout: int
    # The SMS parts and cost of the texts.
    size: AudienceSize
    # The number of customers for whom texts were rendered; if it is below `recipients`, parts and cost are scaled.
    sampled: int
    # Recipients who will have got as many texts as the frequency cap allows, when their text could leave; scaled like
    # parts and cost, as is the reach.
    capped: int
    # The recipients whom a rule stops, judged when their text could leave.
    reach: Reach
    # The number of parts if characters that need Unicode were replaced; None if no character can be replaced.
    parts_if_replaced: int | None
    # How long sending takes at the rates of the campaign and of the senders; None if no rate is limited.
    duration: timedelta | None
    # The offered holdouts; their effects are empty if the customers' spend was not requested.
    holdouts: tuple[HoldoutChoice, ...]
    # The smallest effect that a comparison of the two smallest variants can show; empty with one variant, or without
    # the customers' spend.
    between_variants: tuple[SmallestEffect, ...]
    # When the first texts of a campaign at a local time leave; None for other campaigns.
    first_texts_at: datetime | None = None

    @property
    def gets_text(self) -> int:
        """The recipients who get the text, at the start or later."""
        return self.recipients - self.reach.skipped


async def estimate(
    db: Database, analysis: Analysis, organization_id: UUID, definition: Definition, *, with_spend: bool = False
) -> Estimate:
    """Estimate a campaign. Raises `AudienceRefused` if a segment was deleted or has a fault, and errors of `Analysis`.

    `with_spend` adds the smallest effects, for which sales are loaded, so the first request takes longer.
    """
    async with db.reading() as tx:
        query = await resolve_definition(tx, organization_id, definition)
    counts = await analysis.count_audience(organization_id, query, with_spend=with_spend, sample=SAMPLE_MAX)
    async with db.reading() as tx:
        return await estimate_counts(tx, organization_id, definition, counts)


async def estimate_counts(tx: Tx, organization_id: UUID, definition: Definition, counts: AudienceCounts) -> Estimate:
    """Estimate a campaign whose audience was counted and sampled."""
    texting = await load_texting(tx, organization_id)
    if texting is None:
        raise NotFound("There is no organization with this id.")
    first_at = await find_first_time(tx, organization_id, definition, counts.sample)
    people = await _load_sample(tx, organization_id, definition, counts.sample, texting, first_at=first_at)
    global_holdout = await _estimate_holdout(tx, organization_id, counts)
    assembled = _assemble_estimate(definition, counts, people, texting, global_holdout=global_holdout)
    return replace(assembled, first_texts_at=first_at)


async def _estimate_holdout(tx: Tx, organization_id: UUID, counts: AudienceCounts) -> int:
    """How many customers of the audience are in the global holdout. Exact if the sample contains all customers.
    Otherwise scaled from the share of sampled customers who existed when this quarter's holdout was selected, because
    the percentage of these customers who are held out is known."""
    percent, is_held_out_by_id = await find_holdout_draw(tx, organization_id, counts.sample, at=tx.now)
    if not is_held_out_by_id:
        return 0
    if len(counts.sample) == counts.split.may_be_texted:
        return sum(is_held_out_by_id.values())
    return round(counts.split.may_be_texted * len(is_held_out_by_id) / len(counts.sample) * percent / PERCENT)


class _Person(NamedTuple):
    """A sampled customer. `own_country` is the country of the number in the profile, by which the audience is counted.
    `country` is that of the number with consent, to which the text is sent."""

    recipient: SampledRecipient
    values: Mapping[str, str | None]
    own_country: str | None
    country: str | None
    is_capped: bool
    # The rule that stops every text to this person.
    rule: Rule | None


async def _load_sample(
    tx: Tx,
    organization_id: UUID,
    definition: Definition,
    sample: Sequence[UUID],
    texting: Texting,
    *,
    first_at: datetime | None,
) -> list[_Person]:
    """Load the sampled customers, except those who withdrew their consent since the count."""
    if not sample:
        return []
    numbers = await find_text_numbers(tx, organization_id, sample)
    values = await load_values(tx, organization_id, definition, sample, brand=texting.brand)
    start = max(tx.now, first_at or start_of(definition, now=tx.now))
    end = end_of(definition, start, ZoneInfo(await find_time_zone(tx, organization_id)))
    starts = {number.number_hash: start for number in numbers.values()}
    if isinstance(definition.schedule, SendAtLocalTime):
        local_times = await find_local_times(tx, organization_id, definition.schedule, sample)
        starts = {number.number_hash: max(start, local_times.get(it, start)) for it, number in numbers.items()}
    forecasts = await forecast_texts(tx, organization_id, numbers.values(), texting=texting, starts=starts)
    people = []
    for profile_id, number in numbers.items():
        if profile_id in values:
            profile, forecast = values[profile_id].profile, forecasts[number.number_hash]
            people.append(
                _Person(
                    SampledRecipient(profile_id, profile.first_name, profile.last_name),
                    values[profile_id].values,
                    None if profile.phone_number is None else find_country(profile.phone_number),
                    locate_number(number.phone_number).country,
                    forecast.capped_until is not None,
                    find_rule(
                        forecast, start=starts[number.number_hash], end=end, waits_for_cap=definition.cap == "wait"
                    ),
                )
            )
    return people


def _assemble_estimate(
    definition: Definition, counts: AudienceCounts, people: Sequence[_Person], texting: Texting, *, global_holdout: int
) -> Estimate:
    # The customers outside the global holdout: each gets the text, or is held out by this campaign.
    assignable = counts.split.may_be_texted - global_holdout
    recipients, held_out = split_holdout(assignable, definition.holdout_percent)
    weighted = _weigh_sample(counts, people)
    total_weight = sum(weight for _, _, weight in weighted)
    variants = definition.variants
    texts = _size_each(variants, weighted, texting)
    size = _add_up(texts, recipients, variants, texting)
    replaced = [msgspec.structs.replace(variant, text=_replace_unicode(variant.text)) for variant in variants]
    is_replaceable = any(new.text != old.text for new, old in zip(replaced, variants, strict=True))
    capped = sum(weight for person, _, weight in weighted if person.is_capped)
    return Estimate(
        counts=counts,
        recipients=recipients,
        held_out=held_out,
        global_holdout=global_holdout,
        size=size,
        sampled=len(people),
        capped=round(recipients * capped / total_weight) if total_weight else 0,
        reach=_count_reach(texts, recipients),
        parts_if_replaced=_size_replaced(replaced, weighted, recipients, texting) if is_replaceable else None,
        duration=_estimate_duration(recipients, definition.texts_per_hour, size.countries, texting),
        holdouts=tuple(_offer_holdouts(definition, counts, assignable)),
        between_variants=_compare_variants(definition, counts, recipients),
    )


def _weigh_sample(counts: AudienceCounts, people: Sequence[_Person]) -> list[tuple[_Person, str | None, float]]:
    """Each sampled person with the country of the text and a weight, the number of customers whom the person
    represents. Persons represent the customers of their country; all persons represent a country without any."""
    by_country: dict[str | None, list[_Person]] = defaultdict(list)
    for person in people:
        by_country[person.own_country].append(person)
    weighted: list[tuple[_Person, str | None, float]] = []
    for country, customers in counts.countries:
        sampled = by_country.get(country)
        representatives = sampled or people
        weighted += [
            (person, person.country if sampled or country is None else country, customers / len(representatives))
            for person in representatives
        ]
    return weighted


def _size_each(
    variants: Sequence[Variant], weighted: Sequence[tuple[_Person, str | None, float]], texting: Texting
) -> list[tuple[_Person, TextGroup, float]]:
    """The text of each variant for each person, with its weight."""
    return [
        (person, size_text(arm, variant.text, person.values, country, texting), weight * variant.share)
        for arm, variant in enumerate(variants, start=1)
        for person, country, weight in weighted
    ]


def _add_up(
    texts: Sequence[tuple[_Person, TextGroup, float]], recipients: int, variants: Sequence[Variant], texting: Texting
) -> AudienceSize:
    weights: dict[TextGroup, float] = defaultdict(float)
    for _, group, weight in texts:
        weights[group] += weight
    return add_up(apportion(weights, recipients), variants, texting.settings.prices)


def _count_reach(texts: Sequence[tuple[_Person, TextGroup, float]], recipients: int) -> Reach:
    """The rules that stop texts: what is wrong with the text of a person comes before what holds for all texts."""
    judged = (
        (person.recipient, Rule(group.reason) if group.reason else person.rule, weight)
        for person, group, weight in texts
    )
    return count_reach(judged, recipients)


def _size_replaced(
    variants: Sequence[Variant],
    weighted: Sequence[tuple[_Person, str | None, float]],
    recipients: int,
    texting: Texting,
) -> int:
    """The number of parts of other variants."""
    return _add_up(_size_each(variants, weighted, texting), recipients, variants, texting).parts


def _replace_unicode(content: str | TextVariants) -> str | TextVariants:
    if isinstance(content, str):
        return replace_outside_variables(content, replace_unicode)
    texts = {value: replace_outside_variables(text, replace_unicode) for value, text in content.texts.items()}
    return msgspec.structs.replace(
        content, default=replace_outside_variables(content.default, replace_unicode), texts=texts
    )


def _estimate_duration(
    recipients: int, texts_per_hour: int | None, countries: Sequence[CountrySize], texting: Texting
) -> timedelta | None:
    """The longest time that the rate of the campaign or the rate of a sender requires."""
    parts: dict[str, int] = defaultdict(int)
    for country in countries:
        parts[texting.settings.sender_of(country.country) or texting.provider] += country.parts
    seconds = [
        parts_of_sender / rate
        for sender, parts_of_sender in parts.items()
        if (rate := find_rate(texting, sender)) is not None
    ]
    if texts_per_hour is not None:
        seconds.append(3_600 * recipients / texts_per_hour)
    return timedelta(seconds=round(max(seconds))) if seconds else None


def _offer_holdouts(definition: Definition, counts: AudienceCounts, assignable: int) -> list[HoldoutChoice]:
    may_be_texted = counts.split.may_be_texted
    choices = []
    for percent in sorted({*HOLDOUTS_OFFERED, definition.holdout_percent} - {0}):
        recipients, held_out = split_holdout(assignable, percent)
        effects = smallest_effects(counts.spend, customers=may_be_texted, first=recipients, second=held_out)
        choices.append(HoldoutChoice(percent, held_out, effects))
    return choices


def _compare_variants(definition: Definition, counts: AudienceCounts, recipients: int) -> tuple[SmallestEffect, ...]:
    shares = sorted(variant.share for variant in definition.variants)
    if len(shares) < 2:  # noqa: PLR2004  # a comparison needs two variants
        return ()
    first, second = (recipients * share // sum(shares) for share in shares[:2])
    return smallest_effects(counts.spend, customers=counts.split.may_be_texted, first=first, second=second)
