"""What a page may answer instead of itself; each is a status and words for the person."""

from typing import ClassVar

from regulars.web.access import Action


class PageRefusal(Exception):
    """Shown in the frame with its status."""

    status: ClassVar[int]
    title: ClassVar[str]

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class PageNotFound(PageRefusal):
    status, title = 404, "There is no page here"

    def __init__(self, text: str = "The address may be mistyped, or what it named is gone.") -> None:
        super().__init__(text)


class NotAllowed(PageRefusal):
    status, title = 403, "Your role does not include this"

    def __init__(self, action: Action) -> None:
        super().__init__(f"To {action}, a person of another role is needed.")
        self.action = action


class BadFilter(PageRefusal):
    """A filter of the address cannot be read: the whole list would be a wrong answer. `path` is the unfiltered list."""

    status, title = 400, "This filter cannot be read"

    def __init__(self, text: str, *, path: str) -> None:
        super().__init__(text)
        self.path = path


class BadForm(PageRefusal):
    """The request cannot be read as the form it should be; a field that is wrong gives the form back instead."""

    status, title = 400, "The form could not be read"


class ForeignForm(PageRefusal):
    status, title = 403, "This form was not sent from here"

    def __init__(self) -> None:
        super().__init__(
            "It came from another site, or the page was opened before the last sign-in: open the page again and repeat"
            " the step. Nothing was changed."
        )


class FormTooLarge(PageRefusal):
    status, title = 413, "This is too large"


class MethodRefused(PageRefusal):
    status, title = 405, "This address takes another method"

    def __init__(self, allowed: str) -> None:
        super().__init__(f"It takes {allowed}.")
        self.allowed = allowed


class TooMany(PageRefusal):
    status, title = 429, "Too many tries"


class NotConfirmed(Exception):
    """The password that was asked for again is wrong, or too many were; the sentence says which."""

    def __init__(self, text: str, *, wait_s: int = 0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class Conflict(PageRefusal):
    """Somebody else changed the same thing in between."""

    status, title = 409, "This was changed in between"
