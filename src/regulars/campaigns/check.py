"""The faults of a definition, each with its place and a message for the user."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.campaigns.definition import PERCENT, Definition, SendAt, SendAtLocalTime
from regulars.campaigns.model import end_of, start_of
from regulars.catalog.model import day_of
from regulars.conditions import check as conditions
from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.tree import InSegment
from regulars.kit.ids import CAMPAIGN
from regulars.messaging.request import compose
from regulars.messaging.settings.store import Texting
from regulars.messaging.sms_encoding import PARTS_MAX
from regulars.messaging.template import (
    ATTRIBUTE_PREFIX,
    Template,
    TextVariants,
    Variable,
    fields_of,
    find_text_faults,
    list_texts,
    parse_template,
)

FAULTS_MAX: Final = 50
# A start that a form or a file names may have passed while it was confirmed.
START_MAY_BE_PAST: Final = timedelta(minutes=5)
_OF_TICKETS: Final = frozenset({"ticket.total"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """What a definition refers to, as it is now."""

    conditions: ConditionContext
    texting: Texting
    # The campaigns that `exclude_received` names and that exist.
    campaigns: Collection[UUID]
    now: datetime


def find_faults(definition: Definition, known: CheckContext) -> list[Fault]:
    """A definition without faults can be sent."""
    return list(_faults(definition, known))[:FAULTS_MAX]


def attribute_keys(definition: Definition) -> set[str]:
    """The attributes that the texts use, or that choose between them."""
    fields = {field for variant in definition.variants for field in fields_of(variant.text)}
    return {field.removeprefix(ATTRIBUTE_PREFIX) for field in fields if field.startswith(ATTRIBUTE_PREFIX)}


def _faults(definition: Definition, known: CheckContext) -> Iterator[Fault]:
    yield from _faults_of_audience(definition, known)
    yield from _faults_of_shares(definition)
    for number, variant in enumerate(definition.variants):
        yield from _faults_of_text(f"variants[{number}].text", variant.text, known)
    yield from _faults_of_schedule(definition, known)


def _faults_of_audience(definition: Definition, known: CheckContext) -> Iterator[Fault]:
    if not definition.include:
        yield Fault("include", "A campaign needs at least one segment.")
    for name, segments in (("include", definition.include), ("exclude", definition.exclude)):
        for number, segment_id in enumerate(segments):
            found = conditions.find_faults(InSegment(id=segment_id), known.conditions, root=f"{name}[{number}]")
            yield from (Fault(f"{name}[{number}]", fault.message) for fault in found)
    for segment_id in sorted(set(definition.include) & set(definition.exclude)):
        yield Fault("exclude", f"The segment {segment_id} is included and left out.")
    for number, campaign_id in enumerate(definition.exclude_received):
        if CAMPAIGN.decode(campaign_id) not in known.campaigns:
            yield Fault(f"exclude_received[{number}]", f"There is no campaign {campaign_id}.")


def _faults_of_shares(definition: Definition) -> Iterator[Fault]:
    if not definition.variants:
        yield Fault("variants", "A campaign needs at least one text.")
        return
    total = sum(variant.share for variant in definition.variants)
    if total != PERCENT:
        yield Fault("variants", f"The shares of the variants add up to {total} %, and must add up to 100 %.")


def _faults_of_text(place: str, content: str | TextVariants, known: CheckContext) -> Iterator[Fault]:
    unreadable = [
        Fault(place, it) for it in find_text_faults(content, attribute_keys=known.conditions.attributes.keys())
    ]
    yield from unreadable
    for name in sorted(fields_of(content) & _OF_TICKETS):
        yield Fault(place, f"The text uses {name}, but a campaign has no ticket.")
    for text in [] if unreadable else list_texts(content).values():
        shortest = _without_values(parse_template(text))
        parts = compose(shortest, brand=known.texting.brand, notice=None).measured.parts
        if parts > PARTS_MAX:
            yield Fault(place, f"The text has {parts} parts, and a text has at most {PARTS_MAX}.")


def _without_values(template: Template) -> str:
    """The text for a customer without any value: a longer one may still be skipped as too long."""
    return "".join(piece.default or "" if isinstance(piece, Variable) else piece for piece in template.pieces)


def _faults_of_schedule(definition: Definition, known: CheckContext) -> Iterator[Fault]:
    schedule, now, zone = definition.schedule, known.now, known.conditions.zone
    if isinstance(schedule, SendAt) and schedule.at < now - START_MAY_BE_PAST:
        yield Fault("schedule", "The start is in the past.")
    if isinstance(schedule, SendAtLocalTime) and schedule.day < day_of(now, zone):
        yield Fault("schedule", "The day is in the past.")
    if definition.not_after is None:
        return
    if definition.not_after <= now:
        yield Fault("not_after", "The last moment of sending is in the past.")
    elif end_of(definition, now, zone) <= start_of(definition, now=now):
        yield Fault("not_after", "The last moment of sending is before the start.")


def as_sentence(faults: Sequence[Fault]) -> str:
    first = faults[0]
    more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
    sentence = f"{first.place}: {first.message}{more}"
    return sentence if sentence.endswith(".") else f"{sentence}."
