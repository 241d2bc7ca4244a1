"""Who gets the text of a campaign at its start, who gets it later, and who gets none, by the rule that decides. No I/O.

The gate decides again just before a text is sent; this is what it would decide at the chosen start, if no other text
left until then.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from regulars.campaigns.text_sizes import apportion
from regulars.texts.gate import Forecast
from regulars.texts.model import SkipReason

# How many recipients of each rule are named.
NAMED_MAX: Final = 3


class Rule(NamedTuple):
    """A rule because of which a recipient gets no text at the start: the skip reason, as it is stored with texts. With
    `is_later` the text leaves later, before sending stops. A frequency cap has its texts and hours."""

    reason: str
    is_later: bool = False
    cap_texts: int = 0
    cap_hours: int = 0


class SampledRecipient(NamedTuple):
    """A sampled recipient, as users see it."""

    profile_id: UUID
    first_name: str | None
    last_name: str | None


# Recipients that no rule stops.
_NONE: Final = Rule("")


class Reach(NamedTuple):
    """The recipients by the rule that stops them, and some of those recipients."""

    stopped: Mapping[Rule, int]
    named: Mapping[Rule, tuple[SampledRecipient, ...]]

    @property
    def skipped(self) -> int:
        """The recipients who never get the text."""
        return sum(number for rule, number in self.stopped.items() if not rule.is_later)

    @property
    def later(self) -> int:
        """The recipients who get the text, but not at the start."""
        return sum(number for rule, number in self.stopped.items() if rule.is_later)


def find_rule(forecast: Forecast, *, start: datetime, end: datetime, waits_for_cap: bool) -> Rule | None:
    """The rule that stops a text which could leave at `start` and until `end`; None if it leaves at the start."""
    if forecast.is_suppressed:
        return Rule(SkipReason.SUPPRESSED.value)
    if forecast.capped_until is not None and forecast.cap is not None:
        is_later = waits_for_cap and forecast.capped_until < end
        return Rule(SkipReason.CAP.value, is_later, forecast.cap.texts, forecast.cap.hours)
    if forecast.opens_at is None or forecast.opens_at > start:
        return Rule(SkipReason.HOURS.value, is_later=forecast.opens_at is not None and forecast.opens_at < end)
    return None


def count_reach(judged: Iterable[tuple[SampledRecipient, Rule | None, float]], recipients: int) -> Reach:
    """Scale the sampled recipients, each with its rule and weight, to the number of all recipients."""
    weights: dict[Rule, float] = defaultdict(float)
    named: dict[Rule, dict[UUID, SampledRecipient]] = defaultdict(dict)
    for recipient, rule, weight in judged:
        weights[rule or _NONE] += weight
        if rule is not None and len(named[rule]) < NAMED_MAX:
            named[rule][recipient.profile_id] = recipient
    counts = apportion(weights, recipients)
    stopped = {rule: number for rule, number in counts.most_common() if number and rule != _NONE}
    return Reach(stopped, {rule: tuple(named[rule].values()) for rule in stopped})
