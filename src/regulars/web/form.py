"""What a person filled in: each field is read and checked, and a refused form comes back whole with every error."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

TEXT_CHARACTERS_MAX: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class EditConflict:
    """What another user made of the piece after the form was drawn; `url` shows it. See `kit.etag`."""

    by: str
    at: str
    now: str
    url: str


class FormState:
    """The fields of a form as they stand, and what is wrong with each; templates draw both.

    A page that shows a form for the first time makes one of what is stored; a handler makes one of what was sent.
    """

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values: dict[str, str] = dict(values or {})
        # In the order of the checks, which is the order of the fields.
        self.errors: dict[str, str] = {}
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
        """The first thing wrong with a field is the one that is shown."""
        self.errors.setdefault(name, sentence)

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

    def whole(self, name: str, *, minimum: int, maximum: int) -> int:
        text = self.value(name).strip()
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(maximum)) + 1):
            self.refuse(name, f"A whole number from {minimum} to {maximum}.")
            return minimum
        number = int(text)
        if not minimum <= number <= maximum:
            self.refuse(name, f"A whole number from {minimum} to {maximum}.")
        return number
