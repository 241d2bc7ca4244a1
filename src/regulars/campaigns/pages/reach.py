"""Which rule stops the texts of how many recipients, in sentences for the editor and the confirmation."""

from collections.abc import Sequence
from typing import NamedTuple

from regulars.campaigns.definition import Definition, SendNow
from regulars.campaigns.estimate import Estimate
from regulars.campaigns.pages.progress import REASON_LABELS
from regulars.campaigns.reach import Rule, SampledRecipient
from regulars.campaigns.text_sizes import FAULT
from regulars.texts.labels import describe_period
from regulars.texts.model import SkipReason
from regulars.texts.template import label_field
from regulars.web.format import Format


class RuleLine(NamedTuple):
    """The recipients that a rule stops: how many there are, and some of them."""

    sentence: str
    named: Sequence[SampledRecipient]
    more: int


def list_rules(formats: Format, estimate: Estimate, definition: Definition) -> list[RuleLine]:
    is_now = isinstance(definition.schedule, SendNow)
    lines = []
    for rule, number in estimate.reach.stopped.items():
        named = estimate.reach.named[rule][:number]
        sentence = f"{formats.count(number, 'recipient')} {_describe_rule(rule, is_one=number == 1, is_now=is_now)}"
        lines.append(RuleLine(sentence, named, number - len(named)))
    return lines


def _describe_rule(rule: Rule, *, is_one: bool, is_now: bool) -> str:
    """What these recipients have in common, and what follows from it."""
    reason, _, field = rule.reason.partition(": ")
    follows = f"{'This recipient gets' if is_one else 'They get'} no text."
    match reason:
        case SkipReason.CAP:
            then = "The text leaves as soon as the frequency cap allows it." if rule.is_later else follows
            return f"{_describe_cap(rule, is_now=is_now)}. {then}"
        case SkipReason.HOURS if rule.is_later:
            is_closed = f"{'is' if is_one else 'are'} outside sending hours at the start"
            return f"{is_closed}. The text leaves when the hours open."
        case SkipReason.HOURS:
            return f"{'has' if is_one else 'have'} no open sending hours before sending stops. {follows}"
        case SkipReason.SUPPRESSED:
            return f"sent a reply that may be an opt-out and waits for your decision. {follows}"
        case SkipReason.MISSING_VALUE:
            has = "has" if is_one else "have"
            return f"{has} no {label_field(field)}, and the text has no fallback for it. {follows}"
    if reason == FAULT:
        return f"{'gets' if is_one else 'get'} no text, because the text has a mistake."
    return f"{'gets' if is_one else 'get'} no text: {REASON_LABELS.get(reason, reason).lower()}."


def _describe_cap(rule: Rule, *, is_now: bool) -> str:
    if not rule.cap_texts:
        return "may get no texts, because the frequency cap is 0"
    period = describe_period(rule.cap_hours)
    texts = "a text" if rule.cap_texts == 1 else f"{rule.cap_texts} texts"
    return f"had {texts} in the last {period}" if is_now else f"had {texts} in the {period} before the start"
