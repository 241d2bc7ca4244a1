"""The three kinds of identifier, declared together with their prefixes.

A *canonical* id is ours: a prefix and 26 characters that write a UUIDv7 in Crockford's base 32 (the TypeID format).
An *external* id is the caller's own and never starts with one of our prefixes. A *reference* may be either.
"""

import itertools
import random
import time
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

import msgspec

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
SUFFIX_CHARACTERS = 26
EXTERNAL_ID_CHARACTERS_MAX = 255
_UUID_BITS = 128
_PAIRS = tuple(a + b for a in ALPHABET for b in ALPHABET)
_LOW_BITS = (1 << 70) - 1
_VALUES = {character: value for value, character in enumerate(ALPHABET)}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource: what it is called and how its canonical ids start."""

    noun: str
    prefix: str

    def encode(self, identifier: UUID) -> str:
        return self.spell(identifier.int)

    def spell(self, number: int) -> str:
        """The canonical id whose UUID has this number."""
        # Thirteen pairs of characters, ten bits each: a table look-up per pair, written out because a loop takes twice
        # as long, and this runs twice per sale. The split keeps the numbers small.
        high, low = number >> 70, number & _LOW_BITS
        return (
            f"{self.prefix}{_PAIRS[high >> 50]}{_PAIRS[high >> 40 & 1023]}{_PAIRS[high >> 30 & 1023]}"
            f"{_PAIRS[high >> 20 & 1023]}{_PAIRS[high >> 10 & 1023]}{_PAIRS[high & 1023]}{_PAIRS[low >> 60]}"
            f"{_PAIRS[low >> 50 & 1023]}{_PAIRS[low >> 40 & 1023]}{_PAIRS[low >> 30 & 1023]}"
            f"{_PAIRS[low >> 20 & 1023]}{_PAIRS[low >> 10 & 1023]}{_PAIRS[low & 1023]}"
        )

    def decode(self, text: str) -> UUID | None:
        """Read a canonical id of this kind, or give None: a malformed id refers to nothing."""
        suffix = text.removeprefix(self.prefix)
        if len(suffix) != SUFFIX_CHARACTERS or len(suffix) == len(text):
            return None
        number = 0
        for character in suffix:
            value = _VALUES.get(character)
            if value is None:
                return None
            number = number << 5 | value
        return UUID(int=number) if number >> _UUID_BITS == 0 else None


PROFILE = Kind("profile", "prof_")
SUBSCRIPTION = Kind("subscription", "sub_")
STORE = Kind("store", "store_")
SALES_EVENT = Kind("sales event", "evt_")
RESERVED_PREFIXES = tuple(kind.prefix for kind in (PROFILE, SUBSCRIPTION, STORE, SALES_EVENT))

# Not resources of the interface, so their prefixes are not reserved.
ORGANIZATION = Kind("organization", "org_")
API_KEY = Kind("API key", "key_")


class ById(msgspec.Struct, frozen=True, gc=False):
    """A reference that can only mean a canonical id; `id` is None where no such id can exist."""

    id: UUID | None


class ByExternalId(msgspec.Struct, frozen=True, gc=False):
    external_id: str


Reference = ById | ByExternalId


def read_reference(kind: Kind, text: str) -> Reference:
    """A reference with any reserved prefix is looked up as a canonical id only, also when it is of another kind."""
    if text.startswith(RESERVED_PREFIXES):
        return ById(kind.decode(text))
    return ByExternalId(text)


def split_references(references: Collection[Reference]) -> tuple[list[UUID], list[str]]:
    """The ids and the external ids among the references, sorted, without those that cannot exist."""
    ids = {reference.id for reference in references if isinstance(reference, ById) and reference.id is not None}
    external_ids = {
        reference.external_id
        for reference in references
        # PostgreSQL cannot even be asked for a text with U+0000.
        if isinstance(reference, ByExternalId) and "\0" not in reference.external_id
    }
    return sorted(ids), sorted(external_ids)


def new_uuid() -> UUID:
    return UUID(int=new_uuid_number())


def new_uuid_number() -> int:
    """A UUIDv7: 48 bits of milliseconds, 12 bits of the fraction below (so ids of one process sort), 62 random bits."""
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    fraction = (nanoseconds << 12) // 1_000_000
    chance = random.getrandbits(62)  # an id need only be unique; no secret hangs on it
    return milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0x2 << 62 | chance


_PROCESS = new_uuid().hex[:20]
_requests = itertools.count(1)


def new_request_id() -> str:
    """32 hexadecimal characters, unique to the process and the request: its start, and a number."""
    return f"{_PROCESS}{next(_requests):012x}"
