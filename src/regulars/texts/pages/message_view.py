"""Functions that the pages about texts share: labels and URLs for templates, and text settings."""

from collections.abc import Callable
from typing import Final, TypeVar
from uuid import UUID

from regulars.consent.errors import InvalidPhoneNumber
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, REPLY, TEXT
from regulars.texts.errors import SettingRefused
from regulars.texts.labels import (
    ORIGINS,
    TextLabel,
    describe_end,
    label_detail,
    label_meaning,
    label_reason,
    label_state,
    reason_detail,
)
from regulars.texts.model import ConversationItem, MessageListItem, TextRow, TextState
from regulars.texts.request import may_send_past_cap
from regulars.texts.settings.store import Texting, load_texting, lock_texting
from regulars.web import mask
from regulars.web.errors import PageNotFound
from regulars.web.form import FormState
from regulars.web.visit import Visit

MESSAGES: Final = "/messages"
INBOX: Final = f"{MESSAGES}/inbox"
NUMBERS: Final = f"{MESSAGES}/numbers"
HASH_BYTES: Final = 32
T = TypeVar("T")


class MessageView:
    """Labels and URLs for templates; personal data is masked if the visitor may not see it."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit

    origins = ORIGINS
    state = staticmethod(label_state)
    meaning = staticmethod(label_meaning)
    reason = staticmethod(label_reason)
    detail_label = staticmethod(label_detail)
    may_send_past_cap = staticmethod(may_send_past_cap)

    def detail(self, reason: str | None) -> str | None:
        """The provider's message, which is masked because it may contain a number."""
        return mask.text(self._visit, reason_detail(reason))

    def message_url(self, message: MessageListItem) -> str:
        if message.is_received:
            return self.reply_url(message.id)
        return self.text_url(message.id)

    text_id = staticmethod(TEXT.encode)

    def text_url(self, text_id: UUID) -> str:
        return self._visit.url(MESSAGES, TEXT.encode(text_id))

    def reply_url(self, reply_id: UUID) -> str:
        return self._visit.url(INBOX, REPLY.encode(reply_id))

    def number_url(self, number_hash: bytes) -> str:
        return self._visit.url(NUMBERS, number_hash.hex())

    def customer_url(self, profile_id: UUID) -> str:
        return self._visit.url("/customers", PROFILE.encode(profile_id))

    def label(self, message: ConversationItem) -> TextLabel:
        """The label of a text's state, or of a reply's meaning."""
        if message.text is not None:
            return label_state(message.text.state)
        if message.reply is not None:
            return label_meaning(message.reply.meaning)
        raise AssertionError("a message is a text or a reply")

    def outcome(self, text: TextRow) -> str:
        """The state of a text in a conversation, with the reason if it was not sent."""
        return describe_end(text.reason) or label_state(text.state).name

    def answer_state(self, answer: TextRow, *, is_on_hold: bool) -> TextLabel:
        """What became of an answer to a reply, or what it waits for."""
        state = TextState(answer.state)
        if state is TextState.QUEUED:
            return TextLabel(self._describe_wait(answer, is_on_hold=is_on_hold), "", "pending")
        if state in {TextState.SENT, TextState.DELIVERED}:
            return TextLabel("Answered", label_state(state).sentence, "yes")
        reason = label_reason(answer.reason)
        if reason is None:
            return label_state(state)
        return TextLabel(describe_end(answer.reason) or reason.name, reason.sentence, label_state(state).kind)

    def _describe_wait(self, answer: TextRow, *, is_on_hold: bool) -> str:
        if is_on_hold:
            return "Waiting: all texts are paused"
        if answer.due_at is None or answer.due_at <= self._visit.now:
            return "Waiting to be sent"
        return f"Waiting until {self._visit.format.since(answer.due_at)}"

    def may_have_reached(self, message: ConversationItem) -> bool:
        """Whether a message reached, or may have reached, its recipient."""
        return message.text is None or message.text.state not in {"queued", "skipped", "failed"}


def read_hash(text: str) -> bytes:
    """Parse the keyed hash that stands for a phone number in a URL, because the number itself is personal data."""
    try:
        number_hash = bytes.fromhex(text)
    except ValueError:
        number_hash = b""
    if len(number_hash) != HASH_BYTES or number_hash.hex() != text:
        raise PageNotFound("No number of this organization has this address.")
    return number_hash


async def load_texting_of(tx: Tx, visit: Visit, *, is_to_change: bool = False) -> Texting:
    """The text settings of the visitor's organization, locked if they are to be changed."""
    load = lock_texting if is_to_change else load_texting
    texting = await load(tx, visit.organization_id)
    if texting is None:
        raise PageNotFound
    return texting


def check_field(form: FormState, name: str, check: Callable[[], T]) -> T | None:
    """The result of `check`; if it refuses the value, show the error at the form field and return None."""
    try:
        return check()
    except (SettingRefused, InvalidPhoneNumber) as error:
        form.refuse(name, str(error))
        return None
