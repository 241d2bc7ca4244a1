"""What states, reasons and meanings are called, in words for people."""

from itertools import groupby
from typing import Final, NamedTuple

from regulars.messaging.model import OriginKind, Reason, State
from regulars.messaging.rules import Rule


class Word(NamedTuple):
    """A word, a sentence, and the kind of badge it is shown with."""

    word: str
    sentence: str
    kind: str = "none"


STATES: Final = {
    State.QUEUED: Word("Queued", "It waits for its turn, for the next opening hour, or for a release.", "pending"),
    State.SENDING: Word("Sending", "It passed the gate and is on its way to the provider.", "info"),
    State.SENT: Word("Sent", "The provider has taken it.", "yes"),
    State.DELIVERED: Word("Delivered", "The provider says that it reached the phone.", "yes"),
    State.FAILED: Word("Failed", "The provider could not deliver it.", "failing"),
    State.SKIPPED: Word("Skipped", "It did not pass the gate, so nothing was sent.", "blocked"),
    State.UNKNOWN: Word("Unknown", "It may have left; it is never sent again by itself.", "warn"),
}
REASONS: Final = {
    Reason.NO_CONSENT: Word("No consent", "The number is not subscribed, or the customer has no number that is."),
    Reason.NOT_LINKED: Word("Of another customer", "The number belongs to another customer by now."),
    Reason.SUPPRESSED: Word("May have asked to stop", "A reply of the number waits for the decision of a person."),
    Reason.CAP: Word("Frequency cap", "The number got as many texts as it may in that time."),
    Reason.HOURS: Word("Hours", "Nothing opens within 96 hours in all the places where the number may be."),
    Reason.EXPIRED: Word("Too old", "Its time passed, for instance on hold: 96 hours, or five minutes for an answer."),
    Reason.NO_COUNTRY: Word("No country", "The number belongs to no country."),
    Reason.COUNTRY_NOT_SET: Word("Country not set", "Its country has no notice and reply path yet."),
    Reason.MISSING_VALUE: Word("Missing value", "A place in the text had neither a value nor a default."),
    Reason.TOO_LONG: Word("Too long", "It would have more than ten parts."),
    Reason.LEFT: Word("Left", "The run that asked for it left its journey before the text did."),
    Reason.REFUSED: Word("Refused", "The provider said no."),
    Reason.NOT_REACHED: Word("Provider not reached", "No connection to the provider was made, several times."),
}
ORIGINS: Final = {
    OriginKind.PERSON: "by a person",
    OriginKind.JOURNEY: "by a journey",
    OriginKind.CAMPAIGN: "by a campaign",
    OriginKind.STOP: "confirms a STOP",
    OriginKind.HELP: "answers HELP",
    OriginKind.ANSWER: "answers a reply",
}
MEANINGS: Final = {
    "stop": Word("Stop", "A keyword that withdraws, at once.", "no"),
    "start": Word("Start", "A keyword that subscribes again.", "yes"),
    "help": Word("Help", "A keyword that asks who writes and how to stop.", "info"),
    "perhaps_stop": Word("May ask to stop", "No keyword, but it may ask to stop: the number gets nothing.", "warn"),
    "other": Word("Reply", "No keyword; a person reads it.", "none"),
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
    told = []
    for window, days in groupby(zip(rule.days, _DAYS, strict=True), key=lambda one: one[0]):
        names = [name for _, name in days]
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        hours = "closed" if window is None else f"{_clock(window.opens_minute)} to {_clock(window.closes_minute)}"
        told.append(f"{span} {hours}")
    return f"{', '.join(told)}; {'open' if rule.on_holidays else 'closed'} on public holidays"


def _clock(minute: int) -> str:
    return f"{minute // 60}:{minute % 60:02d}"


def state_word(state: str) -> Word:
    return STATES[State(state)]


def meaning_word(meaning: str) -> Word:
    return MEANINGS[meaning]


def reason_word(reason: str | None) -> Word | None:
    """What a stored reason means; a sentence of ours, or a provider's own words, stay apart (`reason_detail`)."""
    code = _code(reason)
    return REASONS[Reason(code)] if code is not None else None


def reason_detail(reason: str | None) -> str | None:
    """What stands behind the code: the field without a value, the provider's own words."""
    code = _code(reason)
    if reason is None or code is None:
        return reason
    return reason.removeprefix(code).strip(" :") or None


def _code(reason: str | None) -> str | None:
    if reason is None:
        return None
    head = reason.partition(":")[0].partition(" ")[0]
    return head if head in {one.value for one in Reason} else None
