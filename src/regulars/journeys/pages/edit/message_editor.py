"""Measures a text in the journey builder: its length and cost, its Unicode characters, and previews for customers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from regulars.consent.numbers import find_text_numbers
from regulars.journeys.check import SALE_FIELDS
from regulars.journeys.context import template_variables
from regulars.journeys.definition import Definition
from regulars.journeys.sample_customers import SampleCustomer, find_samples
from regulars.journeys.snapshot import find_people, find_sales
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.profiles.model import Profile
from regulars.profiles.search import suggest_profiles
from regulars.texts.cost import TextCost, cost_by_country
from regulars.texts.labels import label_value
from regulars.texts.request import compose_for
from regulars.texts.settings.store import Texting, load_texting
from regulars.texts.sms_encoding import TextSize, UnicodeCharacter, measure
from regulars.texts.template import (
    PLAIN_FIELDS,
    TEMPLATE_CHARACTERS_MAX,
    MissingValue,
    TemplateError,
    TextVariants,
    fill_defaults,
    fill_shortest,
    parse_template,
    render_text,
    texts_by_value,
)
from regulars.web import mask
from regulars.web.visit import Visit

SAMPLES: Final = 3
WHY_NOT: Final = {"no_consent": "may not be texted", "too_long": "would get a text that is too long"}


class TextPreview(NamedTuple):
    """The text that one customer would get, or why the customer would get none."""

    name: str
    url: str
    body: str
    measured: TextSize | None
    why_not: str


class SizedText(NamedTuple):
    """A text as it is sent, with its size and its cost by country."""

    body: str
    measured: TextSize
    costs: Sequence[TextCost]


class FallbackSize(NamedTuple):
    """The size and cost of a text whose variables have their fallback values. Customers get the text if their attribute
    has the value `value`, which is empty for the default text, as is `label`. `shortest` is the size without the
    variables that are left out if their values are missing; None if there are none."""

    value: str
    label: str
    measured: TextSize
    costs: Sequence[TextCost]
    shortest: SizedText | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMeasure:
    """`measured` is the size of the default text as it is sent, with the brand and the opt-out notice. `forcing` has
    the characters that force Unicode; with `is_unknown` the search found no customer."""

    measured: TextSize
    forcing: Sequence[UnicodeCharacter] = ()
    faults: Sequence[str] = ()
    sizes: Sequence[FallbackSize] = ()
    previews: Sequence[TextPreview] = ()
    is_unknown: bool = False
    # The customers that the search found, if there are several; the user chooses one.
    people: Sequence[mask.CustomerMatch] = ()

    @property
    def longest(self) -> TextSize:
        """The size of the longest preview, or of the text alone if there are no previews."""
        sizes = [preview.measured for preview in self.previews if preview.measured is not None]
        return max(sizes, key=lambda size: (size.parts, size.length), default=self.measured)


async def measure_text(
    tx: Tx, visit: Visit, definition: Definition, content: str | TextVariants, *, search: str = ""
) -> TextMeasure:
    """Measure the text; with `search` the previews are for the customer whom the user searched for."""
    texting = await load_texting(tx, visit.organization_id)
    # By the value of the attribute that chooses the text; the default text has the key "".
    texts = texts_by_value(content)
    if texting is None or not texts[""].strip():
        return TextMeasure(measured=measure(texts[""]))
    forcing = {it.character: it for text in texts.values() for it in measure(text).forcing}
    attribute = content.attribute if isinstance(content, TextVariants) else ""
    languages = visit.format.locale.languages
    labels = {value: label_value(attribute, value, languages) if value else "" for value in texts}
    faults, sizes = _measure_variants(texts, labels, texting)
    if faults:
        measured = measure(texts[""][:TEMPLATE_CHARACTERS_MAX])
        return TextMeasure(measured=measured, forcing=list(forcing.values()), faults=faults, sizes=sizes)
    people = await suggest_profiles(tx, visit.organization, search, sees_personal=visit.sees_personal)
    samples = await _get_samples(tx, visit, definition, people) if people or not search else []
    return TextMeasure(
        # The default text comes first; its variables have their fallback values, and its links their real length.
        measured=sizes[0].measured,
        forcing=list(forcing.values()),
        sizes=sizes,
        previews=await _preview(tx, visit, content, samples, texting),
        is_unknown=bool(search) and not people,
        people=[mask.make_match(visit, it) for it in people] if len(people) > 1 else (),
    )


def _measure_variants(
    texts: Mapping[str, str], labels: Mapping[str, str], texting: Texting
) -> tuple[list[str], list[FallbackSize]]:
    """The faults of the texts, and the size and cost of the texts without faults."""
    faults: list[str] = []
    sizes: list[FallbackSize] = []
    for value, text in texts.items():
        try:
            template = parse_template(text)
        except TemplateError as error:
            faults.append(f"{f'Text for {labels[value]}: ' if value else ''}{error} (character {error.position + 1})")
            continue
        measured, costs = _size(fill_defaults(template), texting)[1:]
        shortest = fill_shortest(template)
        sizes.append(
            FallbackSize(value, labels[value], measured, costs, None if shortest is None else _size(shortest, texting))
        )
    return faults, sizes


def _size(text: str, texting: Texting) -> SizedText:
    composed = compose_for(text, None, texting)
    return SizedText(composed.body, composed.measured, cost_by_country(text, texting))


def field_labels(definition: Definition) -> dict[str, str]:
    """The variables that a text of this journey may use. An opt-in has no ticket, so it has no ticket variables."""
    return {
        name: label for name, label in PLAIN_FIELDS.items() if definition.trigger != "opt_in" or name not in SALE_FIELDS
    }


async def _get_samples(tx: Tx, visit: Visit, definition: Definition, people: Sequence[Profile]) -> list[SampleCustomer]:
    """The customer that the user searched for, or else customers whose recent sale or consent triggers the journey."""
    if len(people) > 1:
        return []
    profile_id = people[0].id if people else None
    return await find_samples(tx, visit.organization_id, definition.trigger, limit=SAMPLES, profile_id=profile_id)


async def _preview(
    tx: Tx, visit: Visit, content: str | TextVariants, samples: Sequence[SampleCustomer], texting: Texting
) -> list[TextPreview]:
    ids = {sample.profile_id for sample in samples}
    people = {person.id: person for person in await find_people(tx, visit.organization_id, ids)}
    sale_ids = {sample.sale_id for sample in samples if sample.sale_id}
    sales = {sale.id: sale for sale in await find_sales(tx, visit.organization_id, sale_ids)}
    numbers = await find_text_numbers(tx, visit.organization_id, ids)
    previews = []
    for sample in samples:
        person = people.get(sample.profile_id)
        if person is None:
            continue
        sale = sales.get(sample.sale_id) if sample.sale_id is not None else None
        text = render_text(content, template_variables(person, sale, brand=texting.brand))
        number = numbers.get(sample.profile_id)
        composed = compose_for(text, number, texting)
        previews.append(
            TextPreview(
                mask.name(visit, person.first_name, person.last_name) or "No name yet",
                visit.url("/customers", PROFILE.encode(sample.profile_id)),
                composed.body,
                None if isinstance(text, MissingValue) else composed.measured,
                _reason_text(composed.reason, text),
            )
        )
    return previews


def _reason_text(reason: str | None, text: str | MissingValue) -> str:
    if isinstance(text, MissingValue):
        return f"would get no text: {text.field} is missing, and the text has no fallback for it"
    return WHY_NOT.get(reason or "", reason or "")
