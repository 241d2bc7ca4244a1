"""Personal data by role: what a person without the right sees instead. Pages and exports go through here."""

from typing import Final, NamedTuple, Protocol

import phonenumbers

from regulars.web.visit import Visit

HIDDEN: Final = "•••"
_SHOWN_DIGITS: Final = 2


class Person(Protocol):
    """A customer, as far as pages name one."""

    @property
    def external_id(self) -> str: ...
    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...
    @property
    def phone_number(self) -> str | None: ...


class Candidate(NamedTuple):
    """One of several customers whom a user may mean: how to ask for this one, and how two of one name differ."""

    reference: str
    name: str
    hint: str


def candidate(visit: Visit, person: Person) -> Candidate:
    hint = phone(visit, person.phone_number) or text(visit, person.external_id) or ""
    return Candidate(person.external_id, name(visit, person.first_name, person.last_name) or "No name yet", hint)


def name(visit: Visit, first: str | None, last: str | None) -> str | None:
    """A person's name, or dots; None where there is none, which is no secret."""
    full = " ".join(part for part in (first, last) if part)
    if not full:
        return None
    return full if visit.sees_personal else HIDDEN


def text(visit: Visit, value: str | None) -> str | None:
    """Anything that may tell who somebody is: external ids of customers, attribute values, proofs, texts."""
    if value is None or value == "":
        return value
    return value if visit.sees_personal else HIDDEN


def phone(visit: Visit, number: str | None) -> str | None:
    """In international groups, or the country and the last two digits."""
    if not number:
        return None
    if visit.sees_personal:
        return phone_groups(number)
    try:
        country = f"+{phonenumbers.parse(number).country_code}"
    except phonenumbers.NumberParseException:
        return HIDDEN
    return f"{country} {HIDDEN} {number[-_SHOWN_DIGITS:]}"


def phone_groups(number: str) -> str:
    """As people read it, `+33 6 39 98 41 07`; what is no number stays as it was sent."""
    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return number
    if not phonenumbers.is_possible_number(parsed):
        return number
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
