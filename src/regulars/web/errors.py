"""Errors that become a page: each has a status and a sentence for the user."""

from typing import Final

from regulars.kit.refusals import NotFound, Refused
from regulars.web.access import Action

NO_PAGE: Final = "The address may be mistyped, or the page no longer exists."


class PageNotFound(NotFound):
    def __init__(self, text: str = NO_PAGE) -> None:
        super().__init__(text)


class NotAllowed(Refused):
    status, title = 403, "Your role does not include this"

    def __init__(self, action: Action) -> None:
        super().__init__(f"To {action}, you need another role.")
        self.action = action


class BadFilter(Refused):
    """A filter in the address is invalid. The list is refused, because without the filter it would mislead; `path` is
    the address of the unfiltered list."""

    status, title = 400, "This filter cannot be read"

    def __init__(self, text: str, *, path: str) -> None:
        super().__init__(text)
        self.path = path


class BadForm(Refused):
    """The request body is not a valid form. A wrong field is not a `BadForm`: the form is shown again with its
    error."""

    status, title = 400, "The form could not be read"


class ForeignForm(Refused):
    status, title = 403, "This form was not sent from here"

    def __init__(self) -> None:
        super().__init__(
            "It came from another site, or the page was opened before the last sign-in: open the page again and repeat"
            " the step. Nothing was changed."
        )


class MethodRefused(Refused):
    status, title = 405, "This address takes another method"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"It takes {allowed}.")
        self.allowed = allowed


class TooMany(Refused):
    status, title = 429, "Too many attempts"


class NotConfirmed(Exception):
    """The user entered a wrong password to confirm an action, or made too many attempts; the text says which."""

    def __init__(self, text: str, *, wait_s: int = 0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class Conflict(Refused):
    """Another user changed the same object in the meantime."""
