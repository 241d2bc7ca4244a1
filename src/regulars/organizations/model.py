"""Types of organizations and API keys, and the format of a key: a prefix, 30 random characters and a checksum."""

import hashlib
import secrets
import zlib
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from regulars.work.personal import PersonalData

KEY_PREFIX = "rgl_"
RANDOM_CHARACTERS = 30
CHECKSUM_CHARACTERS = 6
# The end of a key, which lists show.
HINT_CHARACTERS = 4
SECRET_BYTES = 32
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CHARACTERS = frozenset(_ALPHABET)
_KEY_CHARACTERS = len(KEY_PREFIX) + RANDOM_CHARACTERS + CHECKSUM_CHARACTERS


@dataclass(frozen=True, slots=True)
class Organization:
    id: UUID
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SecretAndCountry:
    """The settings of an organization that code without an API request needs, such as imports and the demo."""

    secret: bytes = field(repr=False)
    default_country: str | None


class Permission(StrEnum):
    """The permission of an API key."""

    FULL = "full"
    # May write, but not read stored data: for tills and other devices that may be stolen.
    INGEST = "ingest"


@dataclass(frozen=True, slots=True)
class ApiKey:
    id: UUID
    organization_id: UUID
    name: str
    hint: str
    permission: Permission
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiCaller:
    """The caller of the API, whom a key identifies, with the settings of the organization that a request needs."""

    organization_id: UUID
    api_key_id: UUID
    secret: bytes = field(repr=False)
    default_country: str | None
    is_ingest_only: bool = False


def new_key() -> str:
    random = "".join(secrets.choice(_ALPHABET) for _ in range(RANDOM_CHARACTERS))
    return KEY_PREFIX + random + checksum(random)


def is_well_formed(key: str) -> bool:
    """Return whether the text has the format of a key: a mistyped key or another token is refused without a query."""
    if len(key) != _KEY_CHARACTERS or not key.startswith(KEY_PREFIX):
        return False
    random = key[len(KEY_PREFIX) : -CHECKSUM_CHARACTERS]
    return _CHARACTERS.issuperset(random) and key.endswith(checksum(random))


def checksum(random: str) -> str:
    """Return the CRC-32 in base 62, padded to six characters."""
    number = zlib.crc32(random.encode())
    digits = []
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def hash_key(key: str) -> bytes:
    """Return the stored form of a key. A key has 178 random bits, so a hash without salt is enough."""
    return hashlib.sha256(key.encode()).digest()


PERSONAL_DATA: Final = PersonalData(
    not_personal={
        "organizations": "about the retailer",
        "organization_slugs": "about the retailer",
        "api_keys": "about the retailer's systems",
        "public_address": "about the server",
    }
)
