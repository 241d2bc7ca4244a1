"""Create, encode and parse identifiers, of which there are three kinds.

A *canonical* id is ours: a prefix and a UUIDv7 as 26 characters in Crockford's base 32 (the TypeID format). An
*external* id is the caller's own and never starts with one of our prefixes. A *reference* may be either.
"""

import itertools
import os
import random
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from uuid import UUID

import msgspec

from regulars.kit.clock import truncate_to_milliseconds

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
SUFFIX_CHARACTERS = 26
# Ids that one call of `new_uuids` can make: its counter has 12 bits.
NEW_UUIDS_MAX = 1 << 12
_NEW_IDS_PER_CALL = 64
EXTERNAL_ID_CHARACTERS_MAX = 255
_UUID_BITS = 128
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGIT_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_NIL = bytes(16)
# The ids that were made inside `hiding_new_ids`; None outside of it.
_hidden_ids: ContextVar[set[bytes] | None] = ContextVar("hidden_ids", default=None)


# An encoder that looks up digits one by one takes three times as long, and ids are encoded twice per sale. Here many
# ids form one long number, and five steps spread their 5-bit digits to one byte each. Each id is padded to 32 digits in
# 32 bytes, with its 160 bits at the low end. The first step moves the upper half of the bits to the upper half of the
# bytes, the next does the same in each half, and after the fifth every digit has its own byte. A step is a mask and a
# shift.
_IDS_PER_NUMBER = 32
_PADDING = bytes(16)
_CHARACTERS = ALPHABET.encode().ljust(256, b"\0")
_SPREAD_STEPS = tuple(
    (int.from_bytes(((1 << bits) - 1 << bits).to_bytes(width, "big") * (32 // width * _IDS_PER_NUMBER), "big"), shift)
    for bits, width, shift in ((80, 32, 48), (40, 16, 24), (20, 8, 12), (10, 4, 6), (5, 2, 3))
)


def _spread(number: int) -> int:
    for mask, shift in _SPREAD_STEPS:
        upper = number & mask
        number = number ^ upper | upper << shift
    return number


@dataclass(frozen=True, slots=True)
class IdKind:
    """A kind of resource: its noun, and the prefix of its canonical ids."""

    noun: str
    prefix: str

    def encode(self, identifier: UUID) -> str:
        [text] = self.encode_all([identifier.bytes])
        return text

    def encode_or_none(self, identifier: UUID | None) -> str | None:
        return None if identifier is None else self.encode(identifier)

    def encode_all(self, identifiers: Sequence[bytes]) -> list[str]:
        """Encode UUIDs, each given as its sixteen bytes, as canonical ids."""
        if (hidden := _hidden_ids.get()) is not None:
            identifiers = [_NIL if identifier in hidden else identifier for identifier in identifiers]
        encoded: list[str] = []
        for start in range(0, len(identifiers), _IDS_PER_NUMBER):
            batch = identifiers[start : start + _IDS_PER_NUMBER]
            digits = _spread(int.from_bytes(_PADDING + _PADDING.join(batch), "big")).to_bytes(32 * len(batch), "big")
            text = digits.translate(_CHARACTERS).decode()
            encoded += [self.prefix + text[end - SUFFIX_CHARACTERS : end] for end in range(32, len(text) + 1, 32)]
        return encoded

    def decode(self, text: str) -> UUID | None:
        """Parse a canonical id of this kind; None if it is malformed, because it then refers to nothing."""
        suffix = text.removeprefix(self.prefix)
        if len(suffix) != SUFFIX_CHARACTERS or len(suffix) == len(text):
            return None
        number = 0
        for character in suffix:
            value = _DIGIT_VALUES.get(character)
            if value is None:
                return None
            number = number << 5 | value
        return UUID(int=number) if number >> _UUID_BITS == 0 else None

    def decode_all(self, texts: Iterable[str]) -> list[UUID]:
        """Parse canonical ids of this kind; malformed ids are omitted."""
        return [identifier for text in texts if (identifier := self.decode(text)) is not None]


PROFILE = IdKind("profile", "prof_")
SUBSCRIPTION = IdKind("subscription", "sub_")
STORE = IdKind("store", "store_")
SALES_EVENT = IdKind("sales event", "evt_")
RESOURCES = (PROFILE, SUBSCRIPTION, STORE, SALES_EVENT)
RESERVED_PREFIXES = tuple(kind.prefix for kind in RESOURCES)

# Not resources of the interface, so their prefixes are not reserved.
ORGANIZATION = IdKind("organization", "org_")
API_KEY = IdKind("API key", "key_")
TEXT = IdKind("text", "txt_")
REPLY = IdKind("reply", "rpl_")
SEGMENT = IdKind("segment", "seg_")
JOURNEY = IdKind("journey", "jrn_")
RUN = IdKind("run", "run_")
CAMPAIGN = IdKind("campaign", "cmp_")
WEBHOOK = IdKind("webhook endpoint", "wh_")
WEBHOOK_MESSAGE = IdKind("webhook message", "msg_")
WEBHOOK_DELIVERY = IdKind("webhook delivery", "dlv_")


class ById(msgspec.Struct, frozen=True, gc=False):
    """A reference by canonical id; `id` is None if the text is not a valid id, so that nothing is found."""

    id: UUID | None


class ByExternalId(msgspec.Struct, frozen=True, gc=False):
    external_id: str


Reference = ById | ByExternalId


def read_reference(kind: IdKind, text: str) -> Reference:
    """Parse a reference to a resource. With any reserved prefix, even that of another kind, it is a canonical id."""
    if text.startswith(RESERVED_PREFIXES):
        return ById(kind.decode(text))
    return ByExternalId(text)


def split_references(references: Collection[Reference]) -> tuple[list[UUID], list[str]]:
    """Split references into sorted ids and sorted external ids, without those that cannot exist."""
    ids = {reference.id for reference in references if isinstance(reference, ById) and reference.id is not None}
    external_ids = {
        reference.external_id
        for reference in references
        # PostgreSQL accepts no parameter with U+0000.
        if isinstance(reference, ByExternalId) and "\0" not in reference.external_id
    }
    return sorted(ids, key=attrgetter("bytes")), sorted(external_ids)


def new_uuid() -> UUID:
    [identifier] = new_uuids(1)
    return UUID(bytes=identifier)


def new_uuids(count: int, *, at: datetime | None = None) -> list[bytes]:
    """Make UUIDv7s, as sixteen bytes each and in ascending order, with the time `at` or the current time.

    Each has 48 bits of milliseconds, 12 bits of the fraction of a millisecond, which counts up within a call, and 62
    random bits. Ids of two calls sort in the order of the calls, except within a millisecond.
    """
    if count > NEW_UUIDS_MAX:
        raise ValueError(f"at most {NEW_UUIDS_MAX} ids can be made at once")
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    if at is not None:
        milliseconds = round(at.timestamp() * 1_000)
    fraction = min((nanoseconds << 12) // 1_000_000, (1 << 12) - count)
    # 7 is the version of the UUID, and the 2 below its variant.
    first = milliseconds << 16 | 0x7 << 12 | fraction
    random_bits = random.getrandbits  # an id must be unique, not secret
    new_ids = [(time_ << 64 | 0x2 << 62 | random_bits(62)).to_bytes(16, "big") for time_ in range(first, first + count)]
    if (hidden := _hidden_ids.get()) is not None:
        hidden.update(new_ids)
    return new_ids


@contextmanager
def hiding_new_ids() -> Iterator[None]:
    """Encode all ids that this asyncio task makes in the `with` block as the nil id (all zeros): what they name will
    not exist."""
    token = _hidden_ids.set(set())
    try:
        yield
    finally:
        _hidden_ids.reset(token)


def new_uuids_since(now: datetime) -> Iterator[UUID]:
    """Yield new ids without end. Their times follow the clock that `now` was just read from, such as the database's."""
    ahead = now - datetime.now(UTC)
    while True:
        for identifier in new_uuids(_NEW_IDS_PER_CALL, at=truncate_to_milliseconds(datetime.now(UTC) + ahead)):
            yield UUID(bytes=identifier)


def first_id_at(moment: datetime) -> UUID:
    """Return the smallest id of this millisecond."""
    return UUID(int=max(0, (moment - _EPOCH) // timedelta(milliseconds=1)) << 80)


_process_prefix = new_uuid().hex[:20]
_request_numbers = itertools.count(1)


def _reset_process_id() -> None:
    global _process_prefix  # noqa: PLW0603  # a forked process needs its own prefix
    _process_prefix = new_uuid().hex[:20]


os.register_at_fork(after_in_child=_reset_process_id)


def new_request_id() -> str:
    """Return 32 hexadecimal characters: a random prefix of the process, and a counter."""
    return f"{_process_prefix}{next(_request_numbers):012x}"
