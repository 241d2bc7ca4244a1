"""How an organization texts: its brand, provider, rules, caps and notices; kept as one document."""

from typing import Final, Literal

import msgspec

from regulars.messaging.hours import Rule
from regulars.messaging.rules import DEFAULT_CAPS, Cap, default_rule

ProviderName = Literal["simulator", "twilio"]
SIMULATED_NOTICE: Final = "Reply STOP to opt out"


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
        return known
