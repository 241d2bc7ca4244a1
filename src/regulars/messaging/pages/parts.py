"""What the pages about texts share: numbers by their hash, and lines as they are read."""

from typing import Final
from uuid import UUID

from regulars.kit.ids import PROFILE, REPLY, TEXT
from regulars.messaging.browse.model import MessageLine
from regulars.messaging.find import Line
from regulars.messaging.labels import Word, meaning_word, reason_detail, reason_word, state_word
from regulars.web import mask
from regulars.web.errors import PageNotFound
from regulars.web.visit import Visit

MESSAGES: Final = "/messages"
INBOX: Final = f"{MESSAGES}/inbox"
NUMBERS: Final = f"{MESSAGES}/numbers"
HASH_BYTES: Final = 32


class Shown:
    """Words and addresses for templates, bound to the reader."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    state = staticmethod(state_word)
    meaning = staticmethod(meaning_word)
    reason = staticmethod(reason_word)

    def detail(self, reason: str | None) -> str | None:
        """What a provider said may hold a number."""
        return mask.text(self._visit, reason_detail(reason))

    def message_url(self, line: MessageLine) -> str:
        if line.is_received:
            return self.reply_url(line.id)
        return self.text_url(line.id)

    def text_url(self, text_id: UUID) -> str:
        return self._visit.url(MESSAGES, TEXT.encode(text_id))

    def reply_url(self, reply_id: UUID) -> str:
        return self._visit.url(INBOX, REPLY.encode(reply_id))

    def number_url(self, number_hash: bytes) -> str:
        return self._visit.url(NUMBERS, number_hash.hex())

    def customer_url(self, profile_id: UUID) -> str:
        return self._visit.url("/customers", PROFILE.encode(profile_id))

    def says(self, line: Line) -> Word:
        """The state of a line of a conversation."""
        if line.text is not None:
            return state_word(line.text.state)
        if line.reply is not None:
            return meaning_word(line.reply.meaning)
        raise AssertionError("a line is a text or a reply")


def read_hash(text: str) -> bytes:
    """A number in an address is its keyed hash, so an address tells nobody's number."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != HASH_BYTES or found.hex() != text:
        raise PageNotFound("No number of this organization has this address.")
    return found


def is_said(line: Line) -> bool:
    """Whether a line of a conversation reached, or may have reached, the other side."""
    return line.text is None or line.text.state not in {"skipped", "failed"}


def state_words(reason: str | None, state: str) -> Word:
    """The reason where there is one, else the state."""
    return reason_word(reason) or state_word(state)
