"""How an organization texts: its brand, provider, rules, caps and notices; kept as one document."""

import re
from datetime import datetime
from typing import Final, Literal

import msgspec

from regulars.messaging.rules import DEFAULT_CAPS, Cap, Rule, default_rule

ProviderName = Literal["simulator", "twilio"]
SIMULATED_NOTICE: Final = "Reply STOP to opt out"
_FRENCH_STOP: Final = re.compile(r"36[0-9]{3}")


class Notice(msgspec.Struct, frozen=True):
    """What every text to a country ends with, and the number or keyword by which people stop."""

    words: str
    reply_path: str


class Simulation(msgspec.Struct, frozen=True):
    """What the simulator was told to do: shares from 0 to 1, by the text's id, so that a test can repeat it."""

    fails: float = 0.0
    loses: float = 0.0
    delay_ms: int = 0


class TwilioAccount(msgspec.Struct, frozen=True):
    """The token is sealed and stands apart. The sender is a number, a short code, a name or a messaging service."""

    account_sid: str
    sender: str

    @property
    def is_service(self) -> bool:
        """Whether it is a messaging service, which has several numbers."""
        return self.sender.startswith("MG")

    @property
    def is_name(self) -> bool:
        """Nobody can reply to a name, so the way to stop is another number."""
        return not self.sender.lstrip("+").isdecimal() and not self.is_service


class SenderMark(msgspec.Struct, frozen=True):
    """How far the provider's list of replies to one of our senders was read."""

    # Everything written to the sender before this moment is known.
    heard_until: datetime
    # Where a pass ended before it reached the mark: the page to go on with, and what is known once it is reached.
    next_page: str | None = None
    next_until: datetime | None = None
    # The last pass could not read it: the next one reads the other senders first.
    has_failed: bool = False


class InboundMarks(msgspec.Struct, frozen=True):
    """What is known of the provider's list of replies; of another account it says nothing."""

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

    def rule_of(self, country: str) -> Rule:
        return self.rules.get(country) or default_rule(country)

    def notice_of(self, country: str, provider: ProviderName) -> Notice | None:
        """None: nothing goes to that country yet. The simulator reaches nobody, so it needs no reply path."""
        known = self.notices.get(country)
        if known is None and provider == "simulator":
            return Notice(SIMULATED_NOTICE, "STOP")
        if known is None or (provider == "twilio" and not self.takes_replies(country, known.reply_path)):
            return None
        return known

    def takes_replies(self, country: str, reply_path: str) -> bool:
        """Whether people of a country can stop by it. In France a text under a name names a number of the operators'
        own, five digits that begin with 36."""
        is_name = self.twilio is not None and self.twilio.is_name
        return not (country == "FR" and is_name) or _FRENCH_STOP.fullmatch(reply_path) is not None
