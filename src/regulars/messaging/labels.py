"""The labels of texts and replies on pages and in commands: states, skip reasons, origins, meanings, decisions."""

from collections.abc import Mapping
from itertools import groupby
from typing import Final, NamedTuple

from regulars.messaging.model import OriginKind, SkipReason, TextState
from regulars.messaging.settings.model import SendHoursRule, format_minute
from regulars.messaging.template import TextVariants


class TextLabel(NamedTuple):
    """A short name, an explanation, and the kind of badge in which a page shows the name."""

    name: str
    sentence: str
    kind: str = "none"


STATES: Final = {
    TextState.QUEUED: TextLabel(
        "Queued", "It waits for the queue, for the next open hour, or for a release.", "pending"
    ),
    TextState.SENDING: TextLabel("Sending", "It passed all checks and is on its way to the provider.", "info"),
    TextState.SENT: TextLabel("Sent", "The provider has accepted it.", "yes"),
    TextState.DELIVERED: TextLabel("Delivered", "The provider reports that it reached the phone.", "yes"),
    TextState.FAILED: TextLabel("Failed", "The provider could not deliver it.", "failing"),
    TextState.SKIPPED: TextLabel("Skipped", "It did not pass the checks, so nothing was sent.", "blocked"),
    TextState.UNKNOWN: TextLabel("Unknown", "It may have been sent; it is not sent again automatically.", "warn"),
}
REASONS: Final = {
    SkipReason.NO_CONSENT: TextLabel(
        "No consent", "The number is not subscribed, or the customer has no number that is."
    ),
    SkipReason.NOT_LINKED: TextLabel("Of another customer", "The number belongs to another customer now."),
    SkipReason.SUPPRESSED: TextLabel(
        "May have asked to stop", "A reply from the number waits for a person's decision."
    ),
    SkipReason.CAP: TextLabel("Frequency cap", "The number got as many texts as it may in that time."),
    SkipReason.HOURS: TextLabel(
        "Hours", "There is no open hour within 96 hours in all time zones where the number may be."
    ),
    SkipReason.EXPIRED: TextLabel(
        "Too old", "It expired, for instance on hold: after 96 hours, or five minutes for a response."
    ),
    SkipReason.NO_COUNTRY: TextLabel("No country", "The number belongs to no country."),
    SkipReason.COUNTRY_NOT_SET: TextLabel("Country not set", "Its country has no notice and reply path yet."),
    SkipReason.SENDER_REFUSED: TextLabel(
        "Sender refused", "Its country refuses the sender; set another one for this country."
    ),
    SkipReason.MISSING_VALUE: TextLabel("Missing value", "A variable in the text had neither a value nor a default."),
    SkipReason.TOO_LONG: TextLabel("Too long", "It would have more than ten parts."),
    SkipReason.LEFT: TextLabel("Left", "The customer left the journey before the text was sent."),
    SkipReason.REFUSED: TextLabel("Refused", "The provider refused it."),
    SkipReason.NOT_REACHED: TextLabel("Provider not reached", "Several attempts to connect to the provider failed."),
    SkipReason.CANCELLED: TextLabel("Cancelled", "The campaign was cancelled before the text was sent."),
    SkipReason.GLOBAL_HOLDOUT: TextLabel(
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
    "stop": TextLabel("Stop", "A keyword that opts out at once.", "no"),
    "start": TextLabel("Start", "A keyword that subscribes again.", "yes"),
    "help": TextLabel("Help", "A keyword that asks who writes and how to opt out.", "info"),
    "perhaps_stop": TextLabel(
        "May ask to stop", "Not a keyword, but it may ask to stop: the number gets no texts.", "warn"
    ),
    "other": TextLabel("Reply", "No keyword. Your team decides.", "none"),
}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DECISIONS: Final = {
    "withdrew": "Opted out",
    "revived": "Subscribed again",
    "answered": "Answered",
    "not_stop": "Not an opt-out",
    "ignored": "Changed nothing",
}


def describe_hours(rule: SendHoursRule) -> str:
    """The sending hours of a week in one line; successive days with the same hours are joined."""
    spans = []
    for window, days in groupby(zip(rule.days, _DAYS, strict=True), key=lambda day: day[0]):
        names = [name for _, name in days]
        span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        hours = (
            "closed"
            if window is None
            else f"{format_minute(window.opens_minute)} to {format_minute(window.closes_minute)}"
        )
        spans.append(f"{span} {hours}")
    return f"{', '.join(spans)}; {'open' if rule.on_holidays else 'closed'} on public holidays"


def label_choice(content: str | TextVariants, value: str, languages: Mapping[str, str]) -> str:
    """The customers who get the text of this value, such as "French"; empty if all customers get the same text."""
    if isinstance(content, str):
        return ""
    return label_value(content.attribute, value, languages) if value else "All other customers"


def label_value(attribute: str, value: str, languages: Mapping[str, str]) -> str:
    """An attribute value that chooses a text. A language code becomes the name of the language, from `languages`."""
    if any(word in attribute.casefold() for word in ("lang", "locale")):
        return languages.get(value.replace("-", "_"), value)
    return f"{attribute}: {value}" if attribute else value


def label_state(state: str) -> TextLabel:
    return STATES[TextState(state)]


def label_meaning(meaning: str) -> TextLabel:
    return MEANINGS[meaning]


def label_reason(reason: str | None) -> TextLabel | None:
    """The label of a stored reason; None if the reason has no known code."""
    code = _reason_code(reason)
    return REASONS[SkipReason(code)] if code is not None else None


def reason_detail(reason: str | None) -> str | None:
    """The part of a stored reason after its code: the template field without a value, or the provider's message."""
    code = _reason_code(reason)
    if reason is None or code is None:
        return reason
    return reason.removeprefix(code).strip(" :") or None


def _reason_code(reason: str | None) -> str | None:
    if reason is None:
        return None
    code = reason.partition(":")[0].partition(" ")[0]
    return code if code in {skip_reason.value for skip_reason in SkipReason} else None
