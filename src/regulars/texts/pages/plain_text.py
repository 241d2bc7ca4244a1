"""The form fields of a text to one number, on every page on which a user writes one."""

from typing import Final
from uuid import UUID

from regulars.kit.ids import new_uuid
from regulars.texts.template import MissingValue, TemplateError, render_plain
from regulars.web.form import FormState

ANSWER_CHARACTERS_MAX: Final = 1_000
QUEUED: Final = "Text queued. It is sent if consent, sending hours and the frequency cap allow it."
SENT_BEFORE: Final = "You already sent this text. It is not sent twice."
# The form field with a new id for the text, so that a second press of the button does not send a second text.
ONCE: Final = "once"


def read_once(form: FormState) -> UUID:
    """The id that the form got when it was opened, so that a second press of its button sends no second text."""
    try:
        return UUID(form.value(ONCE))
    except ValueError:
        form.refuse("words", "The form is not complete. Open it again.")
        return new_uuid()


def read_plain_text(form: FormState, name: str) -> str:
    """The text to one customer in a form field, with its links parsed; variables are refused."""
    text = form.value(name).replace("\r\n", "\n").strip()
    if len(text) > ANSWER_CHARACTERS_MAX:
        form.refuse(name, f"A text has at most {ANSWER_CHARACTERS_MAX} characters; this has {len(text)}.")
        return text
    try:
        rendered = render_plain(text)
    except TemplateError as error:
        form.refuse(name, str(error))
        return text
    if isinstance(rendered, MissingValue):
        form.refuse(name, f"A text to one number has no value for {rendered.field}.")
        return text
    return rendered
