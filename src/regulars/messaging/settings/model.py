"""How an organization texts: its brand, provider, rules, caps and notices; kept as one document."""

import re
from typing import Final, Literal

import msgspec

from regulars.messaging.hours import Rule
from regulars.messaging.rules import DEFAULT_CAPS, Cap, default_rule

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
    def is_name(self) -> bool:
        """Nobody can reply to a name, so the way to stop is another number."""
        return not self.sender.lstrip("+").isdecimal() and not self.sender.startswith("MG")


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
