"""Parse and check the fields of a form; a refused form is shown again with its values and all errors."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from starlette.responses import Response

from regulars.web.visit import Visit

TEXT_CHARACTERS_MAX: Final = 1024
_CLOCK: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class EditConflict:
    """Another user (`by`) changed the object after the form was rendered: `now` describes its current state, and `url`
    shows it. See `kit.etag`."""

    by: str
    at: str
    now: str
    url: str


class FormState:
    """The values of a form's fields and their errors; templates render both.

    A page makes it from the stored values, and a handler from the submitted ones. `again` shows the page of the form
    with its errors: the application calls it after a `FormRefused`, so that a handler goes on with valid fields only.
    """

    def __init__(self, values: Mapping[str, str] | None = None, *, again: "ShowAgain | None" = None) -> None:
        self.values: dict[str, str] = dict(values or {})
        self.again = again
        # The error of each field, in the order of the fields.
        self.errors: dict[str, str] = {}
        # How long the user must wait, after too many attempts.
        self.wait_s = 0
        self.conflict: EditConflict | None = None

    @property
    def is_refused(self) -> bool:
        return bool(self.errors)

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def error(self, name: str) -> str | None:
        return self.errors.get(name)

    def is_checked(self, name: str) -> bool:
        return self.value(name) not in {"", "off"}

    def refuse(self, name: str, sentence: str) -> None:
        """Record an error of a field; only the first one is shown."""
        self.errors.setdefault(name, sentence)

    def refusal(self, name: str, error: object) -> "FormRefused":
        """The exception that shows the form again with this error: a sentence, or an exception whose text is one and
        which may have a time to wait (`wait_s`)."""
        self.refuse(name, str(error))
        self.wait_s = getattr(error, "wait_s", 0)
        return FormRefused(self)

    @contextmanager
    def refusing(self, name: str, *errors: type[Exception]) -> Iterator[None]:
        """Show the form again if one of these errors occurs, with its message at the field."""
        try:
            yield
        except errors as error:
            raise self.refusal(name, error) from None

    def check(self) -> None:
        """Show the form again if a field is refused."""
        if self.is_refused:
            raise FormRefused(self)

    def text(self, name: str, *, required: bool = True, characters_max: int = TEXT_CHARACTERS_MAX) -> str:
        """One line of text, without spaces around it."""
        text = self.value(name).strip()
        if required and not text:
            self.refuse(name, "Fill this in.")
        elif len(text) > characters_max:
            self.refuse(name, f"At most {characters_max} characters; this has {len(text)}.")
        elif not all(character.isprintable() for character in text):
            self.refuse(name, "Use visible characters in one line.")
        return text

    def choice(self, name: str, allowed: Collection[str]) -> str:
        value = self.value(name)
        if value not in allowed:
            self.refuse(name, "Choose one of the list.")
        return value

    def integer(self, name: str, *, minimum: int, maximum: int) -> int:
        """An integer within the limits; returns `minimum` if the field is not a number."""
        text = self.value(name).strip()
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(maximum)) + 1):
            self.refuse(name, f"A whole number from {minimum} to {maximum}.")
            return minimum
        number = int(text)
        if not minimum <= number <= maximum:
            self.refuse(name, f"A whole number from {minimum} to {maximum}.")
        return number

    def clock(self, name: str) -> str:
        """A time of day; returns 10:00 if the field is invalid."""
        text = self.text(name)
        if text and _CLOCK.fullmatch(text) is None:
            self.refuse(name, "Enter a time such as 10:00.")
        return "10:00" if self.error(name) else text

    def moment(self, name: str, zone: ZoneInfo, *, required: bool = True) -> datetime | None:
        """The value of a field for date and time, read in this time zone."""
        text = self.value(name).strip()
        if not text and not required:
            return None
        try:
            parsed = datetime.fromisoformat(text)
            return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=zone)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.refuse(name, "A date and a time.")
            return None


ShowAgain = Callable[[Visit, FormState], Awaitable[Response]]


class FormRefused(Exception):
    """A field of a form is refused, and nothing was saved: a transaction that it leaves is rolled back."""

    def __init__(self, form: FormState) -> None:
        super().__init__(form.errors)
        self.form = form


def format_time_field(zone: ZoneInfo, moment: datetime) -> str:
    """A time in the format of a field for date and time."""
    return moment.astimezone(zone).strftime("%Y-%m-%dT%H:%M")
