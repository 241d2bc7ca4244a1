"""Errors that the person who asked can correct or has to know: the message is one sentence for them.

A page shows it with the status and title of its class, and a command ends with it.
"""

from typing import ClassVar


class Refused(Exception):
    status: ClassVar[int] = 409
    title: ClassVar[str] = "This was changed in the meantime"

    @property
    def sentence(self) -> str:
        """The message for a page, which names no part of a definition by a code."""
        return str(self)


class NotFound(Refused):
    status, title = 404, "There is no page here"


class NotPossible(Refused):
    """The state of the object does not allow the action."""


class TooLarge(Refused):
    status, title = 413, "The form is too large"
