"""The interface of an SMS provider: `send` sends one text and returns the outcome."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

from regulars.texts.settings.store import Texting

# The worker connects to the provider within this time after it claimed the text, or returns the text to the queue,
# because consent was checked at the time of the claim.
DIAL_WITHIN_S: Final = 1.0
RESPONSE_WITHIN_S: Final = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingText:
    organization_id: UUID
    text_id: UUID
    phone_number: str
    body: str
    # The text must not reach a phone after this time.
    until: datetime
    # When the worker claimed the text, just before it is sent.
    sent_at: datetime
    # The number of the attempt, from 1. A receipt contains it, so that receipts of earlier attempts are ignored.
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider accepted the text, and gave it an id."""

    provider_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider refused the text; it is not sent again."""

    code: str
    message: str
    # Whether the provider refused it because the person opted out there, with a STOP that did not reach us.
    is_stop: bool = False


@dataclass(frozen=True, slots=True)
class NotReached:
    """Nothing was sent: no connection was made, or the provider is busy (`is_busy`)."""

    message: str
    retry_after: timedelta | None = None
    # Whether the provider's queue is full or its rate limit is reached; the text waits until it is accepted or expires.
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class NotAuthorized:
    """The provider refused the account, so all texts are held until a user corrects the settings."""

    message: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """The text may have been sent. It is sent again only if a user decides so."""

    message: str


Outcome = Accepted | Refused | NotReached | NotAuthorized | Unclear


class Provider(Protocol):
    async def send(self, text: OutgoingText, texting: Texting) -> Outcome: ...


Providers = Mapping[str, Provider]
