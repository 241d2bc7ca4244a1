"""The rules of idempotency keys: the syntax of a key, the fingerprint of a request, and which responses are stored."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from regulars.idempotency.errors import InvalidIdempotencyKey
from regulars.kit.errors import Headers
from regulars.work.personal import PersonalData

RETENTION = timedelta(hours=24)
KEY_CHARACTERS_MAX = 255
# The constraint that a second request with the same key violates.
PRIMARY_KEY = "idempotency_keys_pkey"
# All successes are stored, and the refusals that depend only on the request and the stored data.
_STORED_REFUSALS = frozenset({400, 404})
_SUCCESSES = range(200, 300)
# Only the stored response to a batch request begins with this.
BATCH_BEGINNING = b'{"results":['
_VISIBLE_ASCII = frozenset(range(0x21, 0x7F))


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that is stored for an idempotency key; `body` is None if a person in it was erased."""

    key: str
    fingerprint: bytes
    status: int
    body: bytes | None
    created_at: datetime
    headers: Headers = ()

    def is_expired(self, now: datetime) -> bool:
        return now - self.created_at >= RETENTION


def read_key(values: list[bytes]) -> str | None:
    """Read the key from the values of all `Idempotency-Key` headers of a request."""
    if not values:
        return None
    if len(values) > 1:
        raise InvalidIdempotencyKey("Send one Idempotency-Key header, not several.")
    # White space around a header's value is not part of it, but the HTTP parser removes it only before the value.
    value = values[0].strip(b" \t")
    if not 1 <= len(value) <= KEY_CHARACTERS_MAX or not _VISIBLE_ASCII.issuperset(value):
        raise InvalidIdempotencyKey(
            f"An Idempotency-Key has 1 to {KEY_CHARACTERS_MAX} visible ASCII characters; a UUID is a good one."
        )
    return value.decode("ascii")


def fingerprint(method: str, target: bytes, body: bytes, *, is_ingest_only: bool = False) -> bytes:
    """Hash the method, the path with query (`target`), and the body. No method or path contains the separators.

    An ingest-only API key, which may not read, gets less in its response, so it never shares one with a full key.
    """
    prefix = b"ingest %b" % method.encode() if is_ingest_only else method.encode()
    return hashlib.sha256(b"%b %b\n%b" % (prefix, target, body)).digest()


def is_stored(status: int) -> bool:
    """Whether a response with this status is stored."""
    return status in _SUCCESSES or status in _STORED_REFUSALS


def write_headers(headers: Headers) -> str | None:
    """Encode headers for the database: `name: value`, one per line. Names and values are visible ASCII."""
    return "\n".join([f"{name.decode()}: {value.decode()}" for name, value in headers]) or None


def read_headers(text: str | None) -> Headers:
    lines = () if text is None else text.encode().split(b"\n")
    return tuple([(name, value) for name, _, value in [line.partition(b": ") for line in lines]])


class _Results(msgspec.Struct):
    results: list[msgspec.Raw]


_results_decoder = msgspec.json.Decoder(_Results)
# Replaces a result with an erased person in a stored batch response.
ERASED = b"null"


def change_results(body: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Apply `change` to each result in the response to a batch request."""
    results = [change(bytes(result)) for result in _results_decoder.decode(body).results]
    return BATCH_BEGINNING + b",".join(results) + b"]}"


PERSONAL_DATA: Final = PersonalData(
    columns=("idempotency_keys.body",),
    not_personal={
        "idempotency_keys.key": "chosen by the caller to name a request; deleted after 24 hours",
        "idempotency_keys.fingerprint": "a hash of a whole request; deleted after 24 hours",
        "idempotency_keys.headers": "names of fields that were ignored",
    },
)
