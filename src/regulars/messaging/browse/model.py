"""What the pages on texts show, and which messages they ask for."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class MessageLine(NamedTuple):
    """A text of ours, or a reply: `state` is the text's state or what the reply means, `reason` why it was skipped or
    what was decided about it."""

    id: UUID
    is_received: bool
    at: datetime
    number_hash: bytes | None
    phone_number: str | None
    profile_id: UUID | None
    first_name: str | None
    last_name: str | None
    profile_external_id: str | None
    body: str
    parts: int
    origin_kind: str
    state: str
    reason: str | None
    origin_id: UUID | None = None


class Wanted(NamedTuple):
    """What of the messages is asked for; bounds are ids, which are in the order of time."""

    is_sent: bool = True
    is_received: bool = True
    state: str | None = None
    reason: str | None = None
    is_undecided: bool | None = None
    since: UUID | None = None
    until: UUID | None = None


class NumberLine(NamedTuple):
    """The last thing that was said by or to a number."""

    number_hash: bytes
    phone_number: str
    at: datetime
    body: str
    first_name: str | None
    last_name: str | None
