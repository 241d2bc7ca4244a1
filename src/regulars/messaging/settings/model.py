"""How an organization texts: its brand, provider, hours, caps and notices, stored as one document.

The default hours and caps keep inside the law of each country with a margin. Sources are in docs/texting.md.
"""

import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Literal

import msgspec

from regulars.messaging.settings import senders

ProviderName = Literal["simulator", "twilio"]
SIMULATED_NOTICE: Final = "Reply STOP to opt out"
_FRENCH_STOP: Final = re.compile(r"36[0-9]{3}")
# A text that finds no open hour within this time is skipped: its content would be out of date.
WAIT_MAX: Final = timedelta(hours=96)
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class OpenHours(msgspec.Struct, frozen=True):
    """Local hours of one day, the end not included; it may close at 24:00."""

    opens_minute: int
    closes_minute: int


class Rule(msgspec.Struct, frozen=True):
    """Seven days from Monday on; None is a closed day."""

    days: tuple[OpenHours | None, ...]
    on_holidays: bool = False


def _hours(opens: int, closes: int) -> OpenHours:
    return OpenHours(opens * 60, closes * 60)


_MONDAY_TO_SATURDAY: Final = Rule(days=(*[_hours(8, 20)] * 6, None))
ALWAYS_OPEN: Final = Rule(days=(_hours(0, 24),) * 7, on_holidays=True)
DEFAULT_RULE: Final = _MONDAY_TO_SATURDAY
DEFAULT_RULES: Final = {
    "FR": _MONDAY_TO_SATURDAY,
    "DE": _MONDAY_TO_SATURDAY,
    "AT": _MONDAY_TO_SATURDAY,
    "CH": _MONDAY_TO_SATURDAY,
    # Inside the law of every state: Texas and Florida close earliest, and some states have their own Saturday hours.
    "US": Rule(days=(*[_hours(10, 18)] * 5, _hours(10, 17), None)),
}


class Cap(msgspec.Struct, frozen=True):
    """At most `texts` to one number in any `hours`."""

    texts: int
    hours: int


DEFAULT_CAPS: Final = (Cap(texts=1, hours=24), Cap(texts=4, hours=30 * 24))


def format_minute(minute: int) -> str:
    """A minute of the day as `9:30`."""
    return f"{minute // 60}:{minute % 60:02d}"


def default_rule(country: str) -> Rule:
    return DEFAULT_RULES.get(country, DEFAULT_RULE)


class Notice(msgspec.Struct, frozen=True):
    """The words that end every text to a country, and the number or keyword that opts out."""

    words: str
    reply_path: str


class Simulation(msgspec.Struct, frozen=True):
    """Shares of texts, from 0 to 1, that the simulator refuses or loses. The text's id decides, so that a test can
    repeat it."""

    fails: float = 0.0
    loses: float = 0.0
    delay_ms: int = 0


class TwilioAccount(msgspec.Struct, frozen=True):
    """The token is sealed and stands apart. The sender is a number, a short code, a name or a messaging service."""

    account_sid: str
    sender: str


class Price(msgspec.Struct, frozen=True):
    """What the provider charges for one part."""

    amount: Decimal
    currency: str


class SenderMark(msgspec.Struct, frozen=True):
    """How far the replies to one of our senders were fetched from the provider."""

    # All replies to this sender before this moment were fetched.
    heard_until: datetime
    # Where a pass ended before it reached the mark: the next page, and the new mark once the old one is reached.
    next_page: str | None = None
    next_until: datetime | None = None
    # The last pass could not read this sender: the next pass reads the other senders first.
    has_failed: bool = False


class InboundMarks(msgspec.Struct, frozen=True):
    """How far the provider's list of replies was read, for one account."""

    account_sid: str = ""
    senders: dict[str, SenderMark] = {}
    # Why the last passes could not read the list.
    error: str | None = None
    failing_since: datetime | None = None

    @property
    def heard_until(self) -> datetime | None:
        return min((mark.heard_until for mark in self.senders.values()), default=None)

    @property
    def is_behind(self) -> bool:
        return any(mark.next_page is not None for mark in self.senders.values())


class SmsSettings(msgspec.Struct, frozen=True, kw_only=True):
    brand: str | None = None
    help_contact: str | None = None
    rules: dict[str, Rule] = {}
    caps: tuple[Cap, ...] = DEFAULT_CAPS
    notices: dict[str, Notice] = {}
    simulation: Simulation = Simulation()
    twilio: TwilioAccount | None = None
    # By country: the sender in place of the account's, and the price of a part.
    senders: dict[str, str] = {}
    prices: dict[str, Price] = {}
    # By sender; one that is not listed has the provider's default rate.
    parts_per_second: dict[str, float] = {}

    def rule_of(self, country: str) -> Rule:
        return self.rules.get(country) or default_rule(country)

    def notice_of(self, country: str, provider: ProviderName) -> Notice | None:
        """None: nothing is sent to that country yet. The simulator sends nothing, so it needs no reply path."""
        notice = self.notices.get(country)
        if notice is None and provider == "simulator":
            return Notice(SIMULATED_NOTICE, "STOP")
        if notice is None or (provider == "twilio" and not self.takes_replies(country, notice.reply_path)):
            return None
        return notice

    def sender_of(self, country: str | None) -> str | None:
        """The sender of texts to a country; None: the account is not set."""
        general = None if self.twilio is None else self.twilio.sender
        return general if country is None else self.senders.get(country, general)

    def all_senders(self) -> tuple[str, ...]:
        """The senders of all countries, each once."""
        general = () if self.twilio is None else (self.twilio.sender,)
        return tuple(dict.fromkeys((*general, *self.senders.values())))

    def why_not_sent(self, country: str) -> str | None:
        """One sentence where no text can reach a country because of its sender, or of its notice under that sender."""
        sender = self.sender_of(country)
        refused = None if sender is None else senders.why_refused(country, sender)
        notice = self.notices.get(country)
        if refused is None and notice is not None and not self.takes_replies(country, notice.reply_path):
            return "A text to France under a name needs a number that stops, 36 and three digits (36111)."
        return refused

    def is_sender_refused(self, country: str) -> bool:
        sender = self.sender_of(country)
        return sender is not None and senders.why_refused(country, sender) is not None

    def takes_replies(self, country: str, reply_path: str) -> bool:
        """Whether people of a country can opt out through it. In France a text under a sender name must name a number
        of the operators: five digits that begin with 36."""
        sender = self.sender_of(country)
        has_name = sender is not None and senders.is_name(sender)
        return not (country in senders.FRENCH and has_name) or _FRENCH_STOP.fullmatch(reply_path) is not None
