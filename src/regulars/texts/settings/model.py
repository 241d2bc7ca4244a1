"""The text settings of an organization, stored as one JSON document: brand, SMS provider, sending hours, frequency caps
and opt-out notices.

The default hours and caps are stricter than the law of each country. Sources are in docs/texting.md.
"""

import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Literal

import msgspec

from regulars.texts.settings import senders

ProviderName = Literal["simulator", "twilio"]
SIMULATED_NOTICE: Final = "Reply STOP to opt out"
_FRENCH_STOP_NUMBER: Final = re.compile(r"36[0-9]{3}")
# A text that cannot be sent within this time is skipped, since its content would be out of date.
WAIT_MAX: Final = timedelta(hours=96)
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class OpenHours(msgspec.Struct, frozen=True):
    """The local hours of a day in which texts are sent, in minutes from midnight; the end is excluded."""

    opens_minute: int
    closes_minute: int


class SendHoursRule(msgspec.Struct, frozen=True):
    """The hours of the seven days of a week, starting with Monday; None is a closed day."""

    days: tuple[OpenHours | None, ...]
    on_holidays: bool = False


def _hours(opens: int, closes: int) -> OpenHours:
    return OpenHours(opens * 60, closes * 60)


_MONDAY_TO_SATURDAY: Final = SendHoursRule(days=(*[_hours(8, 20)] * 6, None))
ALWAYS_OPEN: Final = SendHoursRule(days=(_hours(0, 24),) * 7, on_holidays=True)
DEFAULT_RULE: Final = _MONDAY_TO_SATURDAY
DEFAULT_RULES: Final = {
    "FR": _MONDAY_TO_SATURDAY,
    "DE": _MONDAY_TO_SATURDAY,
    "AT": _MONDAY_TO_SATURDAY,
    "CH": _MONDAY_TO_SATURDAY,
    # Allowed in every state: Texas and Florida close earliest, and some states have other hours on Saturday.
    "US": SendHoursRule(days=(*[_hours(10, 18)] * 5, _hours(10, 17), None)),
}


class Cap(msgspec.Struct, frozen=True):
    """At most `texts` texts to one number in any period of `hours` hours."""

    texts: int
    hours: int


DEFAULT_CAPS: Final = (Cap(texts=1, hours=24), Cap(texts=4, hours=30 * 24))


def format_minute(minute: int) -> str:
    """A minute of the day as `9:30`."""
    return f"{minute // 60}:{minute % 60:02d}"


def default_rule(country: str) -> SendHoursRule:
    return DEFAULT_RULES.get(country, DEFAULT_RULE)


class OptOutNotice(msgspec.Struct, frozen=True):
    """The opt-out notice at the end of every text to a country, and the number or keyword by which people opt out."""

    words: str
    reply_path: str


class Simulation(msgspec.Struct, frozen=True):
    """The fractions of texts, from 0 to 1, that the simulator refuses (`fails`) or loses, and how long it takes for a
    text. The outcome depends on the id of the text, so that a test can repeat it."""

    fails: float = 0.0
    loses: float = 0.0
    delay_ms: int = 0


class TwilioAccount(msgspec.Struct, frozen=True):
    """A Twilio account, without its token. The sender is a number, a short code, a name or a messaging service."""

    account_sid: str
    sender: str


class Price(msgspec.Struct, frozen=True):
    """The price of the provider for one SMS part."""

    amount: Decimal
    currency: str


class SenderProgress(msgspec.Struct, frozen=True):
    """How far the replies to one of our sender numbers were read from the provider's list, newest first."""

    # All replies to this sender before this time were read.
    read_until: datetime = msgspec.field(name="heard_until")
    # Set if a pass ended before it reached `read_until`: the next page to read, and the value that `read_until` gets
    # when all pages are read.
    next_page: str | None = None
    next_until: datetime | None = None
    # Whether the last pass failed to read this sender; then the next pass reads the other senders first.
    has_failed: bool = False


class InboundProgress(msgspec.Struct, frozen=True):
    """How far the list of replies of one provider account was read, for each sender number."""

    account_sid: str = ""
    senders: dict[str, SenderProgress] = {}
    # Why the last passes could not read the list.
    error: str | None = None
    failing_since: datetime | None = None

    @property
    def read_until(self) -> datetime | None:
        return min((progress.read_until for progress in self.senders.values()), default=None)

    @property
    def is_behind(self) -> bool:
        return any(progress.next_page is not None for progress in self.senders.values())


class SmsSettings(msgspec.Struct, frozen=True, kw_only=True):
    brand: str | None = None
    # How customers reach the retailer; the response to HELP contains it.
    help_contact: str | None = None
    # The postal address of the brand in one line; the certificate of consent contains it.
    postal_address: str | None = None
    # By country: the sending hours that replace the default.
    rules: dict[str, SendHoursRule] = {}
    caps: tuple[Cap, ...] = DEFAULT_CAPS
    notices: dict[str, OptOutNotice] = {}
    simulation: Simulation = Simulation()
    twilio: TwilioAccount | None = None
    # By country: the sender that replaces the sender of the account, and the price of an SMS part.
    senders: dict[str, str] = {}
    prices: dict[str, Price] = {}
    # The rate by sender; a sender that is not listed has the default rate of the provider.
    parts_per_second: dict[str, float] = {}

    def rule_of(self, country: str) -> SendHoursRule:
        return self.rules.get(country) or default_rule(country)

    def opt_out_notice_of(self, country: str, provider: ProviderName) -> OptOutNotice | None:
        """The opt-out notice of a country; None if nothing can be sent there. The simulator has a default notice."""
        notice = self.notices.get(country)
        if notice is None and provider == "simulator":
            return OptOutNotice(SIMULATED_NOTICE, "STOP")
        if notice is None or (provider == "twilio" and not self.can_opt_out(country, notice.reply_path)):
            return None
        return notice

    def sender_of(self, country: str | None) -> str | None:
        """The sender of texts to a country; None if the account is not set."""
        default_sender = None if self.twilio is None else self.twilio.sender
        return default_sender if country is None else self.senders.get(country, default_sender)

    def all_senders(self) -> tuple[str, ...]:
        """The distinct senders of all countries."""
        default_senders = () if self.twilio is None else (self.twilio.sender,)
        return tuple(dict.fromkeys((*default_senders, *self.senders.values())))

    def why_not_sent(self, country: str) -> str | None:
        """Why no text can be sent to a country with its sender and its opt-out notice; None if texts can be sent."""
        sender = self.sender_of(country)
        refused = None if sender is None else senders.why_refused(country, sender)
        notice = self.notices.get(country)
        if refused is None and notice is not None and not self.can_opt_out(country, notice.reply_path):
            return "A text to France under a name needs a number that stops, 36 and three digits (36111)."
        return refused

    def is_sender_refused(self, country: str) -> bool:
        sender = self.sender_of(country)
        return sender is not None and senders.why_refused(country, sender) is not None

    def can_opt_out(self, country: str, reply_path: str) -> bool:
        """Whether people of a country can opt out through this number or keyword. In France, a text with a name as
        sender must contain a number of the operators: five digits that begin with 36."""
        sender = self.sender_of(country)
        has_name = sender is not None and senders.is_name(sender)
        return not (country in senders.FRENCH and has_name) or _FRENCH_STOP_NUMBER.fullmatch(reply_path) is not None
