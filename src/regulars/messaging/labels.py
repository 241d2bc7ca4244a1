"""Labels of states, reasons, origins and meanings, for pages and commands."""

from itertools import groupby
from typing import Final, NamedTuple

from regulars.messaging.model import OriginKind, SkipReason, TextState
from regulars.messaging.settings.model import Rule, format_minute


class Label(NamedTuple):
    """A name, a sentence, and the kind of badge that shows it."""

    name: str
    sentence: str
    kind: str = "none"


STATES: Final = {
    TextState.QUEUED: Label("Queued", "It waits for the queue, for the next open hour, or for a release.", "pending"),
    TextState.SENDING: Label("Sending", "It passed all checks and is on its way to the provider.", "info"),
    TextState.SENT: Label("Sent", "The provider has accepted it.", "yes"),
    TextState.DELIVERED: Label("Delivered", "The provider reports that it reached the phone.", "yes"),
    TextState.FAILED: Label("Failed", "The provider could not deliver it.", "failing"),
    TextState.SKIPPED: Label("Skipped", "It did not pass the checks, so nothing was sent.", "blocked"),
    TextState.UNKNOWN: Label("Unknown", "It may have been sent; it is not sent again automatically.", "warn"),
}
REASONS: Final = {
    SkipReason.NO_CONSENT: Label("No consent", "The number is not subscribed, or the customer has no number that is."),
    SkipReason.NOT_LINKED: Label("Of another customer", "The number belongs to another customer now."),
    SkipReason.SUPPRESSED: Label("May have asked to stop", "A reply from the number waits for a person's decision."),
    SkipReason.CAP: Label("Frequency cap", "The number got as many texts as it may in that time."),
    SkipReason.HOURS: Label(
        "Hours", "There is no open hour within 96 hours in all time zones where the number may be."
    ),
    SkipReason.EXPIRED: Label(
        "Too old", "It expired, for instance on hold: after 96 hours, or five minutes for a response."
    ),
    SkipReason.NO_COUNTRY: Label("No country", "The number belongs to no country."),
    SkipReason.COUNTRY_NOT_SET: Label("Country not set", "Its country has no notice and reply path yet."),
    SkipReason.SENDER_REFUSED: Label(
        "Sender refused", "Its country refuses the sender; set another one for this country."
    ),
    SkipReason.MISSING_VALUE: Label("Missing value", "A variable in the text had neither a value nor a default."),
    SkipReason.TOO_LONG: Label("Too long", "It would have more than ten parts."),
    SkipReason.LEFT: Label("Left", "The customer left the journey before the text was sent."),
    SkipReason.REFUSED: Label("Refused", "The provider refused it."),
    SkipReason.NOT_REACHED: Label("Provider not reached", "Several attempts to connect to the provider failed."),
    SkipReason.CANCELLED: Label("Cancelled", "The campaign was cancelled before the text was sent."),
    SkipReason.GLOBAL_HOLDOUT: Label(
        "Global holdout", "The customer gets no text of journeys in this quarter, so that their effect can be measured."
    ),
}
ORIGINS: Final = {
    OriginKind.PERSON: "by a person",
    OriginKind.JOURNEY: "by a journey",
    OriginKind.CAMPAIGN: "by a campaign",
    OriginKind.STOP: "confirms a STOP",
    OriginKind.HELP: "answers HELP",
    OriginKind.ANSWER: "answers a reply",
    OriginKind.TEST: "as a test",
}
MEANINGS: Final = {
    "stop": Label("Stop", "A keyword that opts out at once.", "no"),
    "start": Label("Start", "A keyword that subscribes again.", "yes"),
    "help": Label("Help", "A keyword that asks who writes and how to opt out.", "info"),
    "perhaps_stop": Label("May ask to stop", "No keyword, but it may ask to stop: the number gets nothing.", "warn"),
    "other": Label("Reply", "No keyword; a person reads it.", "none"),
}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DECISIONS: Final = {
    "withdrew": "Withdrew",
    "revived": "Subscribed again",
    "answered": "Answered",
    "not_stop": "Not a withdrawal",
    "ignored": "Changed nothing",
}


def describe_hours(rule: Rule) -> str:
    """A week in one line: days with the same hours together."""
    spans = []
    for window, days in groupby(zip(rule.days, _DAYS, strict=True), key=lambda one: one[0]):
        names = [name for _, name in days]
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        hours = (
            "closed"
            if window is None
            else f"{format_minute(window.opens_minute)} to {format_minute(window.closes_minute)}"
        )
        spans.append(f"{span} {hours}")
    return f"{', '.join(spans)}; {'open' if rule.on_holidays else 'closed'} on public holidays"


def label_state(state: str) -> Label:
    return STATES[TextState(state)]


def label_meaning(meaning: str) -> Label:
    return MEANINGS[meaning]


def label_reason(reason: str | None) -> Label | None:
    """The label of a stored reason; the provider's own words are in `reason_detail`."""
    code = _code(reason)
    return REASONS[SkipReason(code)] if code is not None else None


def reason_detail(reason: str | None) -> str | None:
    """The rest of a stored reason after its code: the field without a value, or the provider's own words."""
    code = _code(reason)
    if reason is None or code is None:
        return reason
    return reason.removeprefix(code).strip(" :") or None


def _code(reason: str | None) -> str | None:
    if reason is None:
        return None
    head = reason.partition(":")[0].partition(" ")[0]
    return head if head in {one.value for one in SkipReason} else None
