"""The types of short links and clicks, and the rules by which a click probably comes from a machine. No I/O."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

# A click within this time after its text was handed to the provider is made by a link scanner.
SCANNER_CLICKS_WITHIN: Final = timedelta(seconds=2)
# If one IP address and user agent request more codes than this within a minute, they are a link scanner.
CODES_PER_MINUTE_MAX: Final = 10
# So are all user agents of one IP address that together request more codes than this: the phones of an office or of an
# operator's customers share an address, so it is far above what they open at once.
CODES_OF_ADDRESS_PER_MINUTE_MAX: Final = 50
ADDRESS_WINDOW: Final = timedelta(minutes=1)
AGENT_CHARACTERS_MAX: Final = 300

# Headers that a browser or an app sends when it loads a page in advance, before a person opens it.
_PREFETCH_HEADERS: Final = ("purpose", "sec-purpose", "x-purpose", "x-moz")
_PREFETCH: Final = re.compile(r"prefetch|prerender|preview", re.IGNORECASE)
# User agents of crawlers, link previews in messengers, link scanners and HTTP libraries. Cubot, a brand of phones, is
# not a bot.
_MACHINES: Final = re.compile(
    r"(?<!cu)bot\b|crawl|spider|slurp|preview|scanner|facebookexternalhit|whatsapp|embedly|google-safety|googleother"
    r"|safebrowsing|barracuda|proofpoint|mimecast|virustotal|headless|phantom|lighthouse|python|curl/|wget/|java/|okhttp"
    r"|go-http|libwww|axios|node-fetch|httpclient|apache-http|postman",
    re.IGNORECASE,
)


class ClickClass(StrEnum):
    PERSON = "person"
    MACHINE = "machine"


class LinkOrigin(NamedTuple):
    """Where clicks on a link are counted: a campaign and the number of its variant (`step`), a journey and its step, or
    another text."""

    kind: str
    id: UUID
    step: str


class LinkRow(NamedTuple):
    """A row of `links`; `personal_since` is when a link for one recipient was created, and None for a link that all
    recipients share."""

    code: str
    url: str
    origin_kind: str
    origin_id: UUID
    step: str
    personal_since: datetime | None = None
    text_id: UUID | None = None
    profile_id: UUID | None = None

    @property
    def origin(self) -> LinkOrigin:
        return LinkOrigin(self.origin_kind, self.origin_id, self.step)


class Click(NamedTuple):
    """A request for a short link, from an IP address and a user agent. `class_` follows from the headers alone."""

    id: UUID
    code: str
    at: datetime
    class_: ClickClass
    address: str
    agent: str

    @property
    def minute(self) -> datetime:
        """The start of the minute of the click."""
        return self.at.replace(second=0, microsecond=0)


class ClickSource(NamedTuple):
    """An IP address and a user agent, and the minute in which their codes are counted; `agent` is None for all user
    agents of the address."""

    address: str
    agent: str | None
    since: datetime
    until: datetime


class ClickOfPerson(NamedTuple):
    """A click on a personal link of a customer, for the export of the customer's data."""

    id: UUID
    url: str
    minute: datetime
    class_: str


class CreditableClick(NamedTuple):
    """A click by a person on the personal link of a text; a purchase after it may be credited to the text."""

    profile_id: UUID
    text_id: UUID
    # The start of the minute of the click.
    at: datetime


def classify_request(headers: Mapping[str, str]) -> ClickClass:
    """Whether a request for a link is a person's or a machine's, by its headers, whose names are in lower case."""
    if any(_PREFETCH.search(headers.get(name, "")) for name in _PREFETCH_HEADERS):
        return ClickClass.MACHINE
    return _classify_agent(headers.get("user-agent", "")[:AGENT_CHARACTERS_MAX])


@lru_cache(maxsize=4_096)
def _classify_agent(agent: str) -> ClickClass:
    """Whether a user agent is a person's or a machine's. Cached, since most phones have one of a few hundred."""
    return ClickClass.MACHINE if not agent.strip() or _MACHINES.search(agent) else ClickClass.PERSON


def is_too_soon_for_person(clicked_at: datetime, text_sent_at: datetime | None) -> bool:
    """Whether a click came within two seconds after its text was sent, as the clicks of link scanners do."""
    return text_sent_at is not None and clicked_at - text_sent_at < SCANNER_CLICKS_WITHIN
