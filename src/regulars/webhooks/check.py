"""Check the signature of a request step by step, and say which step fails and what may be the cause."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from regulars.webhooks.delivery.sign import PREFIX, sign

TOLERANCE_S: Final = 300
ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
_SIGNATURE_BYTES: Final = 32
# More than any server takes: what is pasted beyond them is no header of a delivery.
HEADERS_MAX: Final = 200
LINE_CHARACTERS_MAX: Final = 8_192


class Step(NamedTuple):
    """`is_right` is None where an earlier step leaves nothing to check."""

    title: str
    is_right: bool | None
    text: str


class Known(NamedTuple):
    """A secret that may have signed, and what it is called."""

    secret: bytes
    name: str


def read_headers(text: str) -> dict[str, str]:
    """Headers as people paste them: one a line, as they came, or as options of curl."""
    found: dict[str, str] = {}
    for line in text[: HEADERS_MAX * LINE_CHARACTERS_MAX].splitlines()[:HEADERS_MAX]:
        header = _read_header(line[:LINE_CHARACTERS_MAX].strip())
        if header is not None:
            found.setdefault(*header)
    return found


def _read_header(line: str) -> tuple[str, str] | None:
    """`name: value`, perhaps as `-H 'name: value' \\`. Split by hand: a pattern of optional parts reads a line of
    spaces once for every way to share them out."""
    line = line.removesuffix("\\").strip()
    if line.startswith("-H"):
        line = line.removeprefix("-H").strip()
    if line.startswith(("'", '"')):
        line = line.removesuffix(line[0])[1:]
    ends = [place for place in (line.find(":"), line.find("=")) if place > 0]
    if not ends:
        return None
    name, value = line[: min(ends)].strip(), line[min(ends) + 1 :].strip()
    is_name = name.isascii() and name.replace("-", "").isalnum()
    return (name.lower(), value.removesuffix("'").removesuffix('"').strip()) if is_name else None


def read_secret(text: str) -> bytes | None:
    """The bytes that a shown secret stands for; None where it is none."""
    try:
        return base64.b64decode(text.strip().removeprefix(PREFIX), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def check_signature(headers: Mapping[str, str], body: str, secrets: Sequence[Known], *, now: datetime) -> list[Step]:
    """Every step in the order in which a receiver takes them."""
    message_id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    given = headers.get(SIGNATURE, "")
    steps = [
        Step("The three headers are there", *_presence(headers)),
        Step("The time can be read", *_time_form(timestamp)),
        Step("The time is near", *_nearness(timestamp, now)),
        Step("The signature has the right form", *_form(given)),
        Step("There is a secret to check with", *_secrets(secrets)),
    ]
    if not (message_id and timestamp.isascii() and timestamp.isdigit() and _candidates(given) and secrets):
        return [*steps, Step("The signature fits", None, "Not checked, because of what is missing above.")]
    return [*steps, Step("The signature fits", *_fit(message_id, int(timestamp[:15]), given, body, secrets))]


def _presence(headers: Mapping[str, str]) -> tuple[bool, str]:
    missing = [name for name in (ID, TIMESTAMP, SIGNATURE) if not headers.get(name)]
    if not missing:
        return True, "They are what every delivery carries."
    return False, f"Missing: {', '.join(missing)}. A proxy or a framework may have dropped or renamed it."


def _time_form(timestamp: str) -> tuple[bool | None, str]:
    if not timestamp:
        return None, "There is no time."
    if timestamp.isascii() and timestamp.isdigit():
        return True, "Seconds since 1970."
    return False, "It must be whole seconds since 1970, in digits."


def _nearness(timestamp: str, now: datetime) -> tuple[bool | None, str]:
    if not (timestamp.isascii() and timestamp.isdigit()):
        return None, "There is no time that can be read."
    apart = int(timestamp[:15]) - int(now.timestamp())
    if abs(apart) <= TOLERANCE_S:
        return True, f"{abs(apart)} seconds from now; receivers take up to {TOLERANCE_S}."
    side = "old" if apart < 0 else "in the future"
    return (
        False,
        (
            f"It is {abs(apart)} seconds {side}; a receiver refuses more than {TOLERANCE_S}. A delivery that you pasted"
            " later is old of itself; otherwise look at the clock of the receiver."
        ),
    )


def _candidates(given: str) -> list[str]:
    return [one for one in given.split() if one.startswith("v1,")]


def _form(given: str) -> tuple[bool | None, str]:
    if not given:
        return None, "There is no signature."
    candidates = _candidates(given)
    if not candidates:
        return False, "It must begin with v1, and a comma, then base 64; several stand apart by a space."
    for one in candidates:
        try:
            if len(base64.b64decode(one.removeprefix("v1,"), validate=True)) != _SIGNATURE_BYTES:
                raise ValueError
        except (binascii.Error, ValueError):
            return False, "What follows v1, is not the base 64 of 32 bytes: it may be cut, or escaped for an address."
    words = "One signature." if len(candidates) == 1 else "Several: the secret was rotated within the last 24 hours."
    return True, words


def _secrets(secrets: Sequence[Known]) -> tuple[bool, str]:
    if not secrets:
        return False, "Choose an endpoint, or paste a secret that begins with whsec_ and goes on in base 64."
    return True, "Checked with " + " and ".join(one.name for one in secrets) + "."


def _fit(message_id: str, timestamp: int, given: str, body: str, secrets: Sequence[Known]) -> tuple[bool, str]:
    for known in secrets:
        if _is_signed(message_id, timestamp, given, body, known):
            return True, f"It is the HMAC-SHA256 of id, time and body under {known.name}."
    for words, other in _other_bodies(body):
        if any(_is_signed(message_id, timestamp, given, other, known) for known in secrets):
            return False, f"It would fit if {words}. Sign the raw bytes of the body, before anything reads them."
    return (
        False,
        (
            "Another body, id, time or secret was signed. Compare the secret first; then make sure that the body is the"
            " raw one, and not JSON that was read and written again."
        ),
    )


def _is_signed(message_id: str, timestamp: int, given: str, body: str, known: Known) -> bool:
    expected = sign([known.secret], message_id=message_id, timestamp=timestamp, body=body.encode())
    return expected in _candidates(given)


def _other_bodies(body: str) -> list[tuple[str, str]]:
    """What bodies are often turned into on the way."""
    found = [
        ("the white space around the body were not there", body.strip()),
        ("the line breaks were those of Unix", body.replace("\r\n", "\n")),
    ]
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return found
    compact = json.dumps(read, separators=(",", ":"), ensure_ascii=False)
    return [*found, ("the JSON were written as it was sent, without spaces or escapes", compact)]
