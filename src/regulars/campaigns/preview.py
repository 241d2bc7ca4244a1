"""Renders the text of a campaign as some customers of its audience would get it, for example with the longest text."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from regulars.campaigns.audience import resolve_definition
from regulars.campaigns.definition import Definition
from regulars.campaigns.rendering import RecipientValues, load_values
from regulars.columns.client import Analysis
from regulars.columns.protocol import SegmentQuery
from regulars.conditions import tree
from regulars.consent.numbers import TextNumber, find_text_numbers
from regulars.kit.db import Database, Tx
from regulars.kit.refusals import NotFound
from regulars.texts.number_location import locate_number
from regulars.texts.request import compose_for
from regulars.texts.settings.store import Texting, load_texting
from regulars.texts.sms_encoding import TextSize
from regulars.texts.template import MissingValue, TextVariants, choose_text, render_text

# How many random customers are examined to find the longest text, or a customer without a first name.
CANDIDATES_MAX: Final = 500
COUNTRIES_MAX: Final = 8


class PreviewedCustomers(StrEnum):
    """For which customers of the audience the text is shown."""

    LONGEST = "longest"
    WITHOUT_FIRST_NAME = "without_first_name"
    # One customer for each of the most frequent countries.
    COUNTRIES = "countries"
    RANDOM = "random"


class Preview(NamedTuple):
    """The text of one customer; `reason` says why it would be skipped. Without a required value there is no text."""

    profile_id: UUID
    first_name: str | None
    last_name: str | None
    country: str | None
    body: str
    measured: TextSize | None
    reason: str | None


async def preview(
    db: Database,
    analysis: Analysis,
    organization_id: UUID,
    definition: Definition,
    which: PreviewedCustomers,
    *,
    variant: int = 1,
    seed: int = 0,
    hidden: str | None = None,
) -> list[Preview]:
    """Render the texts; empty if the audience has no such customer. Another seed chooses other customers. If the user
    may not see personal data, `hidden` replaces every value of a customer, but parts are counted for the real text.

    Raises `AudienceRefused`, `TemplateError` and the errors of `Analysis`.
    """
    async with db.reading() as tx:
        query = await resolve_definition(tx, organization_id, definition)
    profile_ids = await _choose_customers(analysis, organization_id, query, which, seed=seed)
    async with db.reading() as tx:
        texting = await load_texting(tx, organization_id)
        if texting is None:
            raise NotFound("There is no organization with this id.")
        previews = await _render(tx, definition, variant, profile_ids, texting=texting, hidden=hidden)
    if which is PreviewedCustomers.LONGEST:
        previews.sort(key=lambda it: (it.measured.parts, it.measured.length) if it.measured else (0, 0), reverse=True)
    if which is PreviewedCustomers.WITHOUT_FIRST_NAME:
        previews = [it for it in previews if it.first_name is None]
    return previews if which is PreviewedCustomers.COUNTRIES else previews[:1]


async def _choose_customers(
    analysis: Analysis, organization_id: UUID, query: SegmentQuery, which: PreviewedCustomers, *, seed: int
) -> list[UUID]:
    async def sample(limit: int, *conditions: tree.Condition) -> Sequence[UUID]:
        """Random customers of the audience who meet the conditions."""
        narrowed = msgspec.structs.replace(query, match=tree.All(of=(query.match, *conditions)))
        counts = await analysis.count_audience(organization_id, narrowed, sample=limit, seed=seed)
        return counts.sample

    match which:
        case PreviewedCustomers.RANDOM:
            return [*await sample(1)]
        case PreviewedCustomers.LONGEST:
            return [*await sample(CANDIDATES_MAX)]
        case PreviewedCustomers.WITHOUT_FIRST_NAME:
            # A condition finds customers without any name, however few. No condition finds customers with only a last
            # name, so a sample is searched for them.
            nameless = await sample(1, tree.Named(is_=False))
            return [*nameless] or [*await sample(CANDIDATES_MAX)]
        case PreviewedCustomers.COUNTRIES:
            counts = await analysis.count_audience(organization_id, query)
            countries = [country for country, _ in counts.countries if country is not None][:COUNTRIES_MAX]
            return [it for country in countries for it in await sample(1, tree.Country(any_of=(country,)))]


async def _render(
    tx: Tx, definition: Definition, variant: int, profile_ids: Sequence[UUID], *, texting: Texting, hidden: str | None
) -> list[Preview]:
    organization_id, content = texting.organization_id, definition.variants[variant - 1].text
    numbers = await find_text_numbers(tx, organization_id, profile_ids)
    people = await load_values(tx, organization_id, definition, profile_ids, brand=texting.brand)
    unique_ids = dict.fromkeys(profile_ids)
    return [_preview(content, people[it], numbers.get(it), texting, hidden) for it in unique_ids if it in people]


def _preview(
    content: str | TextVariants,
    person: RecipientValues,
    number: TextNumber | None,
    texting: Texting,
    hidden: str | None,
) -> Preview:
    rendered = render_text(content, person.values)
    composed = compose_for(rendered, number, texting)
    profile = person.profile
    displayed = (
        rendered if hidden is None else render_text(choose_text(content, person.values), _hide(person.values, hidden))
    )
    return Preview(
        profile_id=profile.id,
        first_name=profile.first_name and (hidden or profile.first_name),
        last_name=profile.last_name and (hidden or profile.last_name),
        country=None if number is None else locate_number(number.phone_number).country,
        body=compose_for(displayed, number, texting).body,
        measured=None if isinstance(rendered, MissingValue) else composed.measured,
        reason=composed.reason,
    )


def _hide(values: Mapping[str, str | None], hidden: str) -> dict[str, str | None]:
    """Replace the values of the profile, which are personal data; the brand and the store are not."""
    return {field: hidden if value and field.startswith("profile.") else value for field, value in values.items()}
