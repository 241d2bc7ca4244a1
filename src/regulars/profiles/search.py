"""Search for customers by the beginning of a name or phone number, or by id; and list all of them.

Each statement reads a limited range of an index, however many customers the organization has.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import phonenumbers
from psycopg.sql import SQL

from regulars.kit.columns import names_of
from regulars.kit.db import Tx
from regulars.kit.ids import PROFILE, ById, read_reference
from regulars.kit.keyset import Keyset, PageRequest, PageRows, Position
from regulars.profiles.find import find_profile
from regulars.profiles.model import Profile, read_phone
from regulars.profiles.queries import PROFILES

# A phone number that more profiles share is probably a switchboard, and does not identify a person.
SAME_NUMBER_MAX: Final = 50
# The number of suggestions while a user types a customer's name or id.
SUGGESTIONS_MAX: Final = 8
# With fewer digits a text is not searched as the beginning of a number.
DIGITS_MIN: Final = 3
_NUMBER_BEGINNING: Final = re.compile(r"\+?[0-9 ().\-/\u00a0\u202f]+")


class ProfileHit(NamedTuple):
    """A found customer, and its sort key (`position`), after which the next page of the list begins."""

    profile: Profile
    position: Position


async def search_exactly(
    tx: Tx, organization_id: UUID, text: str, *, default_country: str | None, sees_personal: bool
) -> list[Profile]:
    """Return the profiles with this id or phone number. A user who may not see personal data can search only by
    canonical id."""
    reference = read_reference(PROFILE, text)
    if not isinstance(reference, ById) and (not sees_personal or "\0" in text):
        return []
    profile = await find_profile(tx, organization_id, reference)
    if profile is not None:
        return [profile]
    if isinstance(reference, ById):
        return []
    phone = read_phone(text, default_country=default_country)
    return await _list_by_number(tx, organization_id, phone.number, limit=SAME_NUMBER_MAX)


async def search_by_name(tx: Tx, organization_id: UUID, text: str, page: PageRequest) -> PageRows[ProfileHit]:
    """Return customers whose name begins with the text, ignoring accents and case, in alphabetical order."""
    beginning = "" if "\0" in text else await _fold_name(tx, text)
    if not beginning:
        return PageRows()
    return await _list_by_name(tx, organization_id, beginning, page)


class SearchedOrganization(Protocol):
    """What a search needs to know of an organization; a number without a country code is of its default country."""

    @property
    def organization_id(self) -> UUID: ...
    @property
    def default_country(self) -> str | None: ...


async def search_by_number(tx: Tx, organization: SearchedOrganization, text: str, *, limit: int) -> list[Profile]:
    """Return customers whose phone number begins with the text, by number."""
    beginning = read_number_beginning(text, default_country=organization.default_country)
    if beginning is None:
        return []
    return await tx.fetch_all(
        Profile,
        """
        SELECT {columns}
        FROM (
            SELECT {columns} FROM profiles
            WHERE organization_id = %(organization_id)s
              AND phone_number IS NOT NULL AND left(phone_number, 64) >= %(beginning)s
            ORDER BY left(phone_number, 64)
            LIMIT %(limit)s
        ) AS following
        WHERE starts_with(phone_number, %(beginning)s)
        ORDER BY phone_number, id
        """,
        {"organization_id": organization.organization_id, "beginning": beginning, "limit": limit},
    )


def read_number_beginning(text: str, *, default_country: str | None) -> str | None:
    """The beginning of a number in E.164; None if the text is not one. Without a plus or `00` it is a national number
    of the default country, with the prefix that is dialled there or without it."""
    if _NUMBER_BEGINNING.fullmatch(text) is None:
        return None
    digits = "".join(re.findall("[0-9]", text))
    if len(digits) < DIGITS_MIN:
        return None
    if text.startswith("+"):
        return f"+{digits}"
    if digits.startswith("00"):
        return f"+{digits[2:]}"
    metadata = None if default_country is None else phonenumbers.PhoneMetadata.metadata_for_region(default_country)
    return (
        None if metadata is None else f"+{metadata.country_code}{digits.removeprefix(metadata.national_prefix or '')}"
    )


async def suggest_profiles(
    tx: Tx, organization: SearchedOrganization, text: str, *, sees_personal: bool
) -> list[Profile]:
    """Suggest customers for a text: those with this id or phone number, else those whose name begins with the text."""
    if not text:
        return []
    organization_id, country = organization.organization_id, organization.default_country
    found = await search_exactly(tx, organization_id, text, default_country=country, sees_personal=sees_personal)
    if not found and sees_personal:
        page = PageRequest(limit=SUGGESTIONS_MAX)
        found = [row.profile for row in await search_by_name(tx, organization_id, text, page)]
    return found[:SUGGESTIONS_MAX]


async def find_profiles_by_ids(tx: Tx, organization_id: UUID, ids: Sequence[UUID]) -> list[Profile]:
    """Return the profiles that exist, in no order."""
    return await PROFILES.find_by_ids(tx, organization_id, ids)


# Sorts after every other character: all texts with a prefix are between the prefix and the prefix plus this character.
_LAST_CHARACTER: Final = "\U0010ffff"
# There is one index for "first last" and one for "last first".
_BY_NAME: Final = Keyset({"folded": str, "id": UUID})
_NEWEST: Final = Keyset({"id": UUID}, is_descending=True)
_COLUMNS: Final = SQL(names_of(Profile))


async def _fold_name(tx: Tx, text: str) -> str:
    """Return the text without accents and case, by the same SQL function that the index uses."""
    return str(await tx.fetch_value("SELECT folded_name(%s, NULL)", (text,)))


_LIST_BY_NAME: Final = """
SELECT folded, {columns}
FROM (
    (
        SELECT folded_name(first_name, last_name) COLLATE "C" AS folded, {columns}
        FROM profiles
        WHERE organization_id = %(organization_id)s
          AND (first_name IS NOT NULL OR last_name IS NOT NULL)
          AND (folded_name(first_name, last_name) COLLATE "C", id) {comparison} (%(position_0)s, %(position_1)s)
          AND folded_name(first_name, last_name) COLLATE "C" {bound_comparison} %(bound)s
        ORDER BY folded_name(first_name, last_name) COLLATE "C" {direction}, id {direction}
        LIMIT %(limit)s
    )
    UNION ALL
    (
        SELECT folded_name(last_name, first_name) COLLATE "C" AS folded, {columns}
        FROM profiles
        WHERE organization_id = %(organization_id)s
          AND first_name IS NOT NULL AND last_name IS NOT NULL
          AND (folded_name(last_name, first_name) COLLATE "C", id) {comparison} (%(position_0)s, %(position_1)s)
          AND folded_name(last_name, first_name) COLLATE "C" {bound_comparison} %(bound)s
          -- The branch above has the customers who are found by "first last".
          AND NOT starts_with(folded_name(first_name, last_name), %(beginning)s)
        ORDER BY folded_name(last_name, first_name) COLLATE "C" {direction}, id {direction}
        LIMIT %(limit)s
    )
) AS found
ORDER BY {ordered}
LIMIT %(limit)s
"""


async def _list_by_name(tx: Tx, organization_id: UUID, beginning: str, page: PageRequest) -> PageRows[ProfileHit]:
    """Return profiles whose first name, last name, or full name in either order begins with `beginning`, each once.

    Each index scan has one lower and one upper bound. With two conditions for the lower bound PostgreSQL uses the wider
    one, and reads all names before the page.
    """
    start, bound = beginning, beginning + _LAST_CHARACTER
    if page.is_backward:
        start, bound = bound, start
    return await _BY_NAME.fetch(
        tx,
        _LIST_BY_NAME,
        page if page.position is not None else page._replace(position=(start, str(UUID(int=0)))),
        {"organization_id": organization_id, "beginning": beginning, "bound": bound},
        make=lambda folded, *row: ProfileHit(Profile(*row), (folded, str(row[0]))),
        bound_comparison=SQL(">=" if page.is_backward else "<"),
        columns=_COLUMNS,
    )


async def list_newest(tx: Tx, organization_id: UUID, page: PageRequest) -> PageRows[ProfileHit]:
    """Return all customers, the newest first."""
    return await _NEWEST.fetch(
        tx,
        """
        SELECT {columns} FROM profiles
        WHERE organization_id = %(organization_id)s {and_after_position}
        ORDER BY {ordered}
        LIMIT %(limit)s
        """,
        page,
        {"organization_id": organization_id},
        make=lambda *row: ProfileHit(Profile(*row), (str(row[0]),)),
        columns=_COLUMNS,
    )


async def _list_by_number(tx: Tx, organization_id: UUID, number: str, *, limit: int) -> list[Profile]:
    return await tx.fetch_all(
        Profile,
        """
        SELECT {columns} FROM profiles
        WHERE organization_id = %(organization_id)s
          AND left(phone_number, 64) = left(%(number)s::text, 64) AND phone_number = %(number)s
        ORDER BY id
        LIMIT %(limit)s
        """,
        {"organization_id": organization_id, "number": number, "limit": limit},
    )


async def count_profiles(tx: Tx, organization_id: UUID, *, count_max: int) -> int:
    """Return the number of customers, counted up to `count_max`."""
    # ORDER BY makes the planner use an index; otherwise it may scan the rows of other organizations.
    return await tx.fetch_count(
        "SELECT count(*) FROM (SELECT FROM profiles WHERE organization_id = %s ORDER BY id LIMIT %s) AS counted",
        (organization_id, count_max),
    )
