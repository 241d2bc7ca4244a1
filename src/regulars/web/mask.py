"""Mask personal data for users who may not see it. All pages and exports use these functions."""

from typing import Final, NamedTuple, Protocol

import phonenumbers

from regulars.lists import columns
from regulars.lists.masking import hide_digits
from regulars.web.visit import Visit

HIDDEN: Final = columns.HIDDEN


class MaskedPerson(Protocol):
    """The fields of a customer that identify a person."""

    @property
    def external_id(self) -> str: ...
    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...
    @property
    def phone_number(self) -> str | None: ...


class CustomerMatch(NamedTuple):
    """A customer in search results: the reference that selects them, and a hint that distinguishes equal names."""

    reference: str
    name: str
    hint: str


def make_match(visit: Visit, person: MaskedPerson) -> CustomerMatch:
    hint = phone(visit, person.phone_number) or text(visit, person.external_id) or ""
    return CustomerMatch(person.external_id, name(visit, person.first_name, person.last_name) or "No name yet", hint)


def name(visit: Visit, first: str | None, last: str | None) -> str | None:
    """The full name, masked if necessary; None if there is no name."""
    full = " ".join(part for part in (first, last) if part)
    if not full:
        return None
    return full if visit.sees_personal else HIDDEN


def text(visit: Visit, value: str | None) -> str | None:
    """Any other personal data: external ids of customers, attribute values, proofs, texts."""
    if value is None or value == "":
        return value
    return value if visit.sees_personal else HIDDEN


def phone(visit: Visit, number: str | None) -> str | None:
    """The number in international format, or masked: only the country code and the last two digits."""
    if not number:
        return None
    return phone_groups(number) if visit.sees_personal else hide_digits(number)


def phone_groups(number: str) -> str:
    """The number in international format, `+33 6 39 98 41 07`; a text that is not a number is returned unchanged."""
    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return number
    if not phonenumbers.is_possible_number(parsed):
        return number
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
