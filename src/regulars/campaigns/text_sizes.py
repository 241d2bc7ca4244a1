"""Counts the SMS parts of a campaign's texts by variant and country, and their cost. No I/O."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from regulars.experiments.arms import Variant
from regulars.texts import cost
from regulars.texts.cost import CostEstimate
from regulars.texts.model import SkipReason
from regulars.texts.request import compose
from regulars.texts.settings.model import Price
from regulars.texts.settings.store import Texting
from regulars.texts.sms_encoding import Encoding, UnicodeCharacter, measure
from regulars.texts.template import MissingValue, TemplateError, TextVariants, render_text, texts_by_value

# The skip reason of a text whose template has an error.
FAULT = "fault"
# Customers or texts that are counted together.
Group = TypeVar("Group", bound=tuple[Any, ...])


class TextGroup(NamedTuple):
    """A group of texts counted together; `arm` is the variant's number. A skipped text has a reason and no parts."""

    arm: int
    country: str
    parts: int
    is_unicode: bool
    reason: str


@dataclass(frozen=True, slots=True)
class CountrySize:
    """The texts to one country, empty for numbers of no country; `price` is None if no price per part is set."""

    country: str
    recipients: int
    parts: int
    price: Price | None

    @property
    def cost(self) -> Decimal | None:
        return None if self.price is None else self.parts * self.price.amount


@dataclass(frozen=True, slots=True)
class VariantSize:
    """The texts of one variant. `spread` has the number of recipients by the number of parts, without skipped texts;
    `unicode` is the number of texts that need Unicode, and `forcing` has the characters for which they need it."""

    recipients: int
    parts: int
    spread: Mapping[int, int]
    unicode: int
    forcing: Sequence[UnicodeCharacter]


@dataclass(frozen=True, slots=True)
class AudienceSize:
    """All texts of a campaign."""

    recipients: int
    countries: Sequence[CountrySize]
    variants: Sequence[VariantSize]
    # Recipients whose text would be skipped now, by reason.
    skipped: Mapping[str, int]
    cost: CostEstimate

    @property
    def parts(self) -> int:
        return sum(country.parts for country in self.countries)


def size_text(
    arm: int, content: str | TextVariants, values: Mapping[str, str | None], country: str | None, texting: Texting
) -> TextGroup:
    """The group of the text for a customer with these values and a number of this country."""

    def skip(reason: str) -> TextGroup:
        return TextGroup(arm, country or "", 0, is_unicode=False, reason=reason)

    if country is None:
        return skip(SkipReason.NO_COUNTRY.value)
    notice = texting.opt_out_notice_of(country)
    if notice is None:
        return skip(SkipReason.COUNTRY_NOT_SET.value)
    if texting.is_sender_refused(country):
        return skip(SkipReason.SENDER_REFUSED.value)
    try:
        rendered = render_text(content, values)
    except TemplateError:
        return skip(FAULT)
    if isinstance(rendered, MissingValue):
        return skip(f"{SkipReason.MISSING_VALUE.value}: {rendered.field}")
    composed = compose(rendered, texting, notice=notice)
    if composed.is_too_long:
        return skip(SkipReason.TOO_LONG.value)
    measured = composed.measured
    return TextGroup(arm, country, measured.parts, is_unicode=measured.encoding is Encoding.UCS_2, reason="")


def apportion(weights: Mapping[Group, float], total: int) -> Counter[Group]:
    """Distribute the total over the groups in proportion to the weights, by the method of the largest remainder."""
    total_weight = sum(weights.values())
    if not total_weight:
        return Counter()
    shares = {key: total * weight / total_weight for key, weight in weights.items()}
    counts = Counter({key: int(share) for key, share in shares.items()})
    by_remainder = sorted(shares, key=lambda key: (int(shares[key]) - shares[key], key))
    counts.update(by_remainder[: total - counts.total()])
    return counts


def add_up(counts: Mapping[TextGroup, int], variants: Sequence[Variant], prices: Mapping[str, Price]) -> AudienceSize:
    """Add up the parts and the cost of groups of texts; `prices` has the price of a part by country."""
    recipients, parts, skipped = Counter[str](), Counter[str](), Counter[str]()
    counts_by_arm: dict[int, dict[TextGroup, int]] = defaultdict(dict)
    for key, number in counts.items():
        recipients[key.country] += number
        parts[key.country] += number * key.parts
        counts_by_arm[key.arm][key] = number
        if key.reason:
            skipped[key.reason] += number
    countries = [CountrySize(it, recipients[it], parts[it], prices.get(it)) for it, _ in recipients.most_common()]
    return AudienceSize(
        recipients.total(),
        countries,
        [_size_variant(variant, counts_by_arm[arm]) for arm, variant in enumerate(variants, start=1)],
        dict(skipped.most_common()),
        cost.estimate(parts, prices),
    )


def _size_variant(variant: Variant, counts: Mapping[TextGroup, int]) -> VariantSize:
    spread = Counter[int]()
    for key, number in counts.items():
        if not key.reason:
            spread[key.parts] += number
    forcing = {
        character.character: character
        for text in texts_by_value(variant.text).values()
        for character in measure(text).forcing
    }
    return VariantSize(
        recipients=sum(counts.values()),
        parts=sum(parts * number for parts, number in spread.items()),
        spread={parts: number for parts, number in sorted(spread.items()) if number},
        unicode=sum(number for key, number in counts.items() if key.is_unicode),
        forcing=list(forcing.values()),
    )
