"""The labels of texts and replies on pages and in commands: states, skip reasons, origins, meanings, decisions."""

from collections.abc import Mapping
from itertools import groupby
from typing import Final, NamedTuple

from regulars.links.origin_kind import OriginKind
from regulars.texts.model import SkipReason, TextState
from regulars.texts.settings.model import Cap, SendHoursRule, format_minute
from regulars.texts.template import TextVariants


class TextLabel(NamedTuple):
    """A short name, an explanation, and the style (`kind`) of the badge in which a page shows the name."""

    name: str
    sentence: str
    kind: str = "none"


STATES: Final = {
    TextState.QUEUED: TextLabel(
        "Queued", "It waits for its turn, for the next open hour, or until you release all texts.", "pending"
    ),
    TextState.SENDING: TextLabel("Sending", "It passed all checks and is on its way to the provider.", "info"),
    TextState.SENT: TextLabel("Sent", "The provider has accepted it.", "yes"),
    TextState.DELIVERED: TextLabel("Delivered", "The provider reports that it reached the phone.", "yes"),
    TextState.FAILED: TextLabel("Failed", "The provider could not deliver it.", "failing"),
    TextState.SKIPPED: TextLabel("Skipped", "It did not pass the checks, so nothing was sent.", "blocked"),
    TextState.UNKNOWN: TextLabel(
        "May have been sent", "We do not know whether it was sent. It is not sent again automatically.", "warn"
    ),
}
REASONS: Final = {
    SkipReason.NO_CONSENT: TextLabel(
        "No consent", "The number may not be texted, or the customer has no number that may be texted."
    ),
    SkipReason.NOT_LINKED: TextLabel(
        "Number of another customer", "The number belonged to another customer when the text was checked."
    ),
    SkipReason.SUPPRESSED: TextLabel(
        "Possible opt-out", "A reply from the number may be an opt-out, and your team had not decided about it."
    ),
    SkipReason.CAP: TextLabel("Frequency cap", "The number has reached the frequency cap."),
    SkipReason.HOURS: TextLabel(
        "Outside sending hours", "No sending hour within 96 hours is open in all time zones where the number can be."
    ),
    SkipReason.EXPIRED: TextLabel(
        "Expired", "It was not sent in time: within 96 hours, or five minutes for a response to STOP or HELP."
    ),
    SkipReason.NO_COUNTRY: TextLabel("Unknown country", "The number belongs to no country that we know."),
    SkipReason.COUNTRY_NOT_SET: TextLabel(
        "Country not set up", "Its country has no opt-out notice, or no number or keyword to opt out."
    ),
    SkipReason.SENDER_REFUSED: TextLabel(
        "Sender refused", "Its country refuses the sender. Set another sender for this country."
    ),
    SkipReason.MISSING_VALUE: TextLabel("Missing value", "A variable in the text had neither a value nor a fallback."),
    SkipReason.TOO_LONG: TextLabel("Too long", "It would have more than ten SMS parts."),
    SkipReason.LEFT: TextLabel("Left the journey", "The customer left the journey before the text was sent."),
    SkipReason.REFUSED: TextLabel("Refused by the provider", "The provider refused it."),
    SkipReason.NOT_REACHED: TextLabel("Provider not reached", "Several attempts to connect to the provider failed."),
    SkipReason.UNDELIVERED: TextLabel(
        "Not delivered", "The provider accepted it, and reported later that it did not reach the phone."
    ),
    SkipReason.CANCELLED: TextLabel("Campaign cancelled", "The campaign was cancelled before the text was sent."),
    SkipReason.GLOBAL_HOLDOUT: TextLabel(
        "Global holdout", "The customer gets no journey texts in this quarter, so that you can measure their effect."
    ),
}
ORIGINS: Final = {
    OriginKind.PERSON: "Written by your team",
    OriginKind.JOURNEY: "From a journey",
    OriginKind.CAMPAIGN: "From a campaign",
    OriginKind.STOP: "Response to STOP",
    OriginKind.HELP: "Response to HELP",
    OriginKind.ANSWER: "Answer by your team",
    OriginKind.TEST: "Test text",
}
MEANINGS: Final = {
    "stop": TextLabel("STOP", "A keyword that opts out at once.", "no"),
    "start": TextLabel("START", "A keyword that opts in again.", "yes"),
    "help": TextLabel("HELP", "A keyword that asks who writes and how to opt out.", "info"),
    "perhaps_stop": TextLabel(
        "Possible opt-out", "It may be an opt-out. The number gets no texts until you decide.", "warn"
    ),
    "other": TextLabel("Other reply", "It contains no keyword such as STOP. You decide.", "none"),
}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DECISIONS: Final = {
    "withdrew": "Opted out",
    "revived": "Opted in again",
    "answered": "Answered",
    "not_stop": "Kept opted in",
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
    """An attribute value that chooses a text: the name of a language, or the value with its attribute."""
    if is_language(attribute) or not attribute:
        return name_language(value, languages)
    return f"{attribute}: {value}"


def is_language(attribute: str) -> bool:
    """Whether the values of a customer attribute are probably language codes, such as fr or de-CH."""
    return any(word in attribute.casefold() for word in ("lang", "locale"))


def name_language(code: str, languages: Mapping[str, str]) -> str:
    """The name of a language, from the names by code; an unknown code is returned unchanged."""
    return languages.get(code.replace("-", "_"), code)


def label_state(state: str) -> TextLabel:
    return STATES[TextState(state)]


def label_meaning(meaning: str) -> TextLabel:
    return MEANINGS[meaning]


def label_reason(reason: str | None) -> TextLabel | None:
    """The label of a stored reason; None if the reason has no known code."""
    code = read_reason(reason)
    return REASONS[code] if code is not None else None


def name_reason(code: str) -> str:
    """The name of a stored reason's code within a sentence; an unknown code is returned unchanged."""
    label = label_reason(code)
    return code if label is None else label.name[:1].lower() + label.name[1:]


def reason_detail(reason: str | None) -> str | None:
    """The part of a stored reason after its code: the template field without a value, or the provider's message."""
    code = read_reason(reason)
    if reason is None or code is None:
        return reason
    return reason.removeprefix(code).strip(" :") or None


def describe_end(reason: str | None) -> str | None:
    """What became of a text with this reason, in a few words; None without a known reason."""
    label = label_reason(reason)
    if label is None:
        return None
    # The provider accepted the text, so it was sent.
    return label.name if read_reason(reason) is SkipReason.UNDELIVERED else f"Not sent: {label.name.lower()}"


def label_detail(reason: str | None) -> str:
    """The label of the detail of a stored reason."""
    is_missing = read_reason(reason) is SkipReason.MISSING_VALUE
    return "Variable without a value" if is_missing else "Message of the provider"


def read_reason(reason: str | None) -> SkipReason | None:
    """The code at the beginning of a stored reason, if it is a known one."""
    if reason is None:
        return None
    code = reason.partition(":")[0].partition(" ")[0]
    return SkipReason(code) if code in {skip_reason.value for skip_reason in SkipReason} else None


def describe_cap(cap: Cap) -> str:
    """A frequency cap, such as "1 text in 24 hours" or "4 texts in 30 days"."""
    return f"{cap.texts} text{'s' * (cap.texts != 1)} in {describe_period(cap.hours)}"


def describe_period(hours: int) -> str:
    """The period of a frequency cap, in days if it has several whole ones."""
    days, rest = divmod(hours, 24)
    return f"{days} days" if days > 1 and not rest else f"{hours} hour{'s' * (hours != 1)}"
