"""Finds the faults of a campaign's definition, each with its path in the definition and a message for the user."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from regulars.campaigns.definition import Definition, SendAt, SendAtLocalTime
from regulars.campaigns.model import end_of, start_of
from regulars.catalog.model import day_of
from regulars.conditions import faults as conditions
from regulars.conditions.check import ConditionContext, Fault
from regulars.conditions.tree import InSegment
from regulars.experiments.arms import PERCENT
from regulars.kit.ids import CAMPAIGN
from regulars.texts.request import compose
from regulars.texts.settings.store import Texting
from regulars.texts.sms_encoding import PARTS_MAX
from regulars.texts.template import (
    ATTRIBUTE_PREFIX,
    Template,
    TextVariants,
    Variable,
    fields_of,
    find_text_faults,
    parse_template,
    texts_by_value,
)

FAULTS_MAX: Final = 50
# A start may be this far in the past, because time passes between writing and confirming a campaign.
START_PAST_MAX: Final = timedelta(minutes=5)
# Text variables of a ticket, which a campaign does not have.
_TICKET_VARIABLES: Final = frozenset({"ticket.total"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """The current state of everything that a definition refers to."""

    conditions: ConditionContext
    texting: Texting
    # The existing campaigns in `exclude_received`.
    campaigns: Collection[UUID]
    now: datetime


def find_faults(definition: Definition, context: CheckContext) -> list[Fault]:
    """The faults of a definition; a campaign without faults can be sent."""
    return list(_iterate_faults(definition, context))[:FAULTS_MAX]


def attribute_keys(definition: Definition) -> set[str]:
    """The customer attributes that the texts contain, or by which a recipient gets one of several texts."""
    fields = {field for variant in definition.variants for field in fields_of(variant.text)}
    return {field.removeprefix(ATTRIBUTE_PREFIX) for field in fields if field.startswith(ATTRIBUTE_PREFIX)}


def _iterate_faults(definition: Definition, context: CheckContext) -> Iterator[Fault]:
    yield from _faults_of_audience(definition, context)
    yield from _faults_of_shares(definition)
    for index, variant in enumerate(definition.variants):
        yield from _faults_of_text(f"variants[{index}].text", variant.text, context)
    yield from _faults_of_schedule(definition, context)


def _faults_of_audience(definition: Definition, context: CheckContext) -> Iterator[Fault]:
    if not definition.include:
        yield Fault("include", "A campaign needs at least one segment.")
    for name, segments in (("include", definition.include), ("exclude", definition.exclude)):
        for index, segment_id in enumerate(segments):
            faults = conditions.find_faults(InSegment(id=segment_id), context.conditions, root=f"{name}[{index}]")
            yield from (Fault(f"{name}[{index}]", fault.message) for fault in faults)
    for segment_id in sorted(set(definition.include) & set(definition.exclude)):
        yield Fault("exclude", f"The segment {segment_id} is included and left out.")
    for index, campaign_id in enumerate(definition.exclude_received):
        if CAMPAIGN.decode(campaign_id) not in context.campaigns:
            yield Fault(f"exclude_received[{index}]", f"There is no campaign {campaign_id}.")


def _faults_of_shares(definition: Definition) -> Iterator[Fault]:
    if not definition.variants:
        yield Fault("variants", "A campaign needs at least one text.")
        return
    total = sum(variant.share for variant in definition.variants)
    if total != PERCENT:
        yield Fault("variants", f"The shares of the variants add up to {total} %, and must add up to 100 %.")


def _faults_of_text(path: str, content: str | TextVariants, context: CheckContext) -> Iterator[Fault]:
    syntax_faults = [
        Fault(path, it) for it in find_text_faults(content, attribute_keys=context.conditions.attributes.keys())
    ]
    yield from syntax_faults
    for name in sorted(fields_of(content) & _TICKET_VARIABLES):
        yield Fault(path, f"The text uses {name}, but a campaign has no ticket.")
    for text in [] if syntax_faults else texts_by_value(content).values():
        shortest = _without_values(parse_template(text))
        # Without the opt-out notice, because it depends on the country of the recipient.
        parts = compose(shortest, context.texting, notice=None).measured.parts
        if parts > PARTS_MAX:
            yield Fault(path, f"The text has {parts} SMS parts; at most {PARTS_MAX} are possible.")


def _without_values(template: Template) -> str:
    """The shortest text, for a customer without any values. Longer texts are skipped when the campaign runs, if they
    have too many parts."""
    return "".join(piece.default or "" if isinstance(piece, Variable) else piece for piece in template.pieces)


def _faults_of_schedule(definition: Definition, context: CheckContext) -> Iterator[Fault]:
    schedule, now, zone = definition.schedule, context.now, context.conditions.zone
    if isinstance(schedule, SendAt) and schedule.at < now - START_PAST_MAX:
        yield Fault("schedule", "The start is in the past.")
    if isinstance(schedule, SendAtLocalTime) and schedule.day < day_of(now, zone):
        yield Fault("schedule", "The day is in the past.")
    if definition.not_after is None:
        return
    if definition.not_after <= now:
        yield Fault("not_after", "The last moment of sending is in the past.")
    elif end_of(definition, now, zone) <= start_of(definition, now=now):
        yield Fault("not_after", "The last moment of sending is before the start.")
