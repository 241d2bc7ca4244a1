"""The message editor: the length of a text, the characters that make it longer, and previews for real customers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from regulars.catalog.entries import list_entries
from regulars.catalog.model import Catalog
from regulars.consent.numbers import find_text_numbers
from regulars.journeys.check import SALE_FIELDS
from regulars.journeys.context import template_variables
from regulars.journeys.definition import Definition
from regulars.journeys.sample_customers import Sample, find_samples
from regulars.journeys.snapshot import find_people, find_sales
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE
from regulars.kit.keyset import PageRequest
from regulars.messaging.request import compose_for, reason_to_skip
from regulars.messaging.settings.store import Texting, load_texting
from regulars.messaging.sms_encoding import TextSize, UnicodeCharacter, measure, replace_unicode
from regulars.messaging.template import (
    ATTRIBUTE_PREFIX,
    PLAIN_FIELDS,
    TEMPLATE_CHARACTERS_MAX,
    MissingValue,
    Template,
    TemplateError,
    parse_template,
    render,
)
from regulars.profiles.model import Profile
from regulars.profiles.search import find_candidates
from regulars.web import mask
from regulars.web.visit import Visit

SAMPLES: Final = 3
ATTRIBUTES_OFFERED_MAX: Final = 200
WHY_NOT: Final = {"no_consent": "has not opted in to texts", "too_long": "would get a text that is too long"}


class TextPreview(NamedTuple):
    """The text that one customer would get, or the reason for none."""

    name: str
    url: str
    body: str
    measured: TextSize | None
    why_not: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """`measured` is of the text as it is sent, with the brand and the opt-out notice."""

    measured: TextSize
    forcing: tuple[UnicodeCharacter, ...]
    fault: str = ""
    previews: Sequence[TextPreview] = ()
    is_unknown: bool = False
    # The customers found where the search found several; the user chooses one.
    people: Sequence[mask.Candidate] = ()

    @property
    def longest(self) -> TextSize:
        """The longest preview, or the text alone where there is none."""
        found = [one.measured for one in self.previews if one.measured is not None]
        return max(found, key=lambda one: (one.parts, one.length), default=self.measured)


async def measure_text(tx: Tx, visit: Visit, definition: Definition, text: str, *, search: str = "") -> Measure:
    texting = await load_texting(tx, visit.organization_id)
    text = text.replace("\r\n", "\n")
    if len(text) > TEMPLATE_CHARACTERS_MAX:
        fault = f"At most {TEMPLATE_CHARACTERS_MAX} characters; this has {len(text)}."
        return Measure(measured=measure(text[:TEMPLATE_CHARACTERS_MAX]), forcing=(), fault=fault)
    if texting is None or not text.strip():
        return Measure(measured=measure(text), forcing=())
    forcing = measure(text).forcing
    try:
        template = parse_template(text)
    except TemplateError as error:
        return Measure(measured=measure(text), forcing=forcing, fault=f"{error} (character {error.position + 1})")
    people = await find_candidates(
        tx,
        visit.organization_id,
        search,
        default_country=visit.organization.default_country,
        sees_personal=visit.sees_personal,
    )
    samples = await _samples(tx, visit, definition, people) if people or not search else []
    return Measure(
        measured=compose_for(text, None, texting).measured,
        forcing=forcing,
        previews=await _preview(tx, visit, template, samples, texting),
        is_unknown=bool(search) and not people,
        people=[mask.candidate(visit, one) for one in people] if len(people) > 1 else (),
    )


async def pick_fields(tx: Tx, organization_id: UUID, definition: Definition) -> list[tuple[str, str]]:
    """The template variables on offer: each as it is written in a text, and its label."""
    known = await list_entries(tx, organization_id, Catalog.ATTRIBUTES, PageRequest(ATTRIBUTES_OFFERED_MAX))
    plain = [
        (_variable(name), label)
        for name, label in PLAIN_FIELDS.items()
        if definition.trigger != "opt_in" or name not in SALE_FIELDS
    ]
    return plain + [
        (_variable(f"{ATTRIBUTE_PREFIX}{entry.key}", entry.key), f"attribute {entry.key}") for entry in known
    ]


def replace_character(text: str, character: str) -> str:
    """Replace every occurrence by a similar GSM-7 character; without one the text stays as it is."""
    return text.replace(character, replace_unicode(character)) if len(character) == 1 else text


def _variable(name: str, key: str | None = None) -> str:
    """A template variable as it is written. A value of a profile or a city may be missing, so it has a default."""
    if key is not None and not key.isidentifier():
        quoted = f"'{key}'" if '"' in key else f'"{key}"'
        name = f"profile.attributes[{quoted}]"
    default = ' | default("there")' if name.startswith("profile.") or name == "store.city" else ""
    return f"{{{{ {name}{default} }}}}"


async def _samples(tx: Tx, visit: Visit, definition: Definition, people: Sequence[Profile]) -> list[Sample]:
    """The customer searched for, else some whom the trigger of the journey concerned recently."""
    if not people:
        return await find_samples(tx, visit.organization_id, definition.trigger, limit=SAMPLES)
    if len(people) > 1:
        return []
    found = await find_samples(tx, visit.organization_id, definition.trigger, limit=1, profile_id=people[0].id)
    return found or [Sample(people[0].id, None)]


async def _preview(
    tx: Tx, visit: Visit, template: Template, samples: Sequence[Sample], texting: Texting
) -> list[TextPreview]:
    ids = {sample.profile_id for sample in samples}
    people = {one.id: one for one in await find_people(tx, visit.organization_id, ids)}
    sales = {
        one.id: one for one in await find_sales(tx, visit.organization_id, {it.sale_id for it in samples if it.sale_id})
    }
    numbers = await find_text_numbers(tx, visit.organization_id, ids)
    previews = []
    for sample in samples:
        person = people.get(sample.profile_id)
        if person is None:
            continue
        sale = sales.get(sample.sale_id) if sample.sale_id is not None else None
        text = render(template, template_variables(person, sale, brand=texting.brand))
        number = numbers.get(sample.profile_id)
        composed = compose_for(text, number, texting)
        reason = reason_to_skip(text, number, composed)
        is_missing = isinstance(text, MissingValue)
        previews.append(
            TextPreview(
                mask.name(visit, person.first_name, person.last_name) or "No name yet",
                visit.url("/customers", PROFILE.encode(sample.profile_id)),
                "" if is_missing else composed.body,
                None if is_missing else composed.measured,
                _reason_text(reason, text),
            )
        )
    return previews


def _reason_text(reason: str | None, text: str | MissingValue) -> str:
    if isinstance(text, MissingValue):
        return f"has no {text.field}, and the text has no fallback for it: the text would be skipped"
    return WHY_NOT.get(reason or "", reason or "")
