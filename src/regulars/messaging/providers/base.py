"""What a provider is: it sends one text, and says what it knows about what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

from regulars.messaging.settings.store import Texting

# Whoever claimed a text dials within this time, or gives it back: consent was seen at the claim.
DIAL_WITHIN_S: Final = 1.0
ANSWER_WITHIN_S: Final = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    organization_id: UUID
    text_id: UUID
    phone_number: str
    body: str
    # It must not reach a phone after this moment.
    until: datetime
    sent_at: datetime
    # The number of the claim: a receipt names it, so that one of an earlier attempt is known.
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Accepted:
    provider_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider said no, for good."""

    code: str
    message: str
    # Its own list says that this number has withdrawn: a STOP that we did not hear.
    is_stop: bool = False


@dataclass(frozen=True, slots=True)
class NotReached:
    """Nothing left: no connection was made, or the provider asked to come again later (`is_busy`)."""

    message: str
    retry_after: timedelta | None = None
    # Its queue is full, or it was asked too often: the text waits until it is taken, or too old.
    is_busy: bool = False


@dataclass(frozen=True, slots=True)
class NotAuthorized:
    """Nothing left, and nothing will before a person has looked at the account: texts are put on hold."""

    message: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """It may have left. It is never sent again unless a person says so."""

    message: str


Outcome = Accepted | Refused | NotReached | NotAuthorized | Unclear


class Provider(Protocol):
    async def send(self, text: Outgoing, texting: Texting) -> Outcome: ...


Providers = Mapping[str, Provider]
