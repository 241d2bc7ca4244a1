"""Sign a delivery as Standard Webhooks specifies, and find out, step by step, why a receiver refused a signature."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from regulars.webhooks.secrets import PREFIX

# By how much the timestamp of a delivery may differ from the receiver's clock.
TOLERANCE_S: Final = 300
ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
_SIGNATURE_BYTES: Final = 32
# Pasted text is cut at these limits, which exceed those of any server.
HEADERS_MAX: Final = 200
LINE_CHARACTERS_MAX: Final = 8_192


class CheckStep(NamedTuple):
    """One step of the check; `is_right` is None if it cannot be checked because an earlier step failed."""

    title: str
    is_right: bool | None
    text: str


class NamedSecret(NamedTuple):
    """A secret that may have signed, and its name for users."""

    secret: bytes
    name: str


def sign(secrets_: Sequence[bytes], *, message_id: str, timestamp: int, body: bytes) -> str:
    """Return one signature for each secret: a receiver may have the old secret or the new one."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return " ".join(
        f"v1,{base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()}" for secret in secrets_
    )


def read_headers(text: str) -> dict[str, str]:
    """Parse headers as users paste them: one per line, plain or as options of curl."""
    headers: dict[str, str] = {}
    for line in text[: HEADERS_MAX * LINE_CHARACTERS_MAX].splitlines()[:HEADERS_MAX]:
        header = _read_header(line[:LINE_CHARACTERS_MAX].strip())
        if header is not None:
            headers.setdefault(*header)
    return headers


def _read_header(line: str) -> tuple[str, str] | None:
    """Parse `name: value`, or `-H 'name: value' \\`. It does not use a regular expression, because one with optional
    parts would backtrack over a long line of spaces."""
    line = line.removesuffix("\\").strip()
    if line.startswith("-H"):
        line = line.removeprefix("-H").strip()
    if line.startswith(("'", '"')):
        line = line.removesuffix(line[0])[1:]
    ends = [position for position in (line.find(":"), line.find("=")) if position > 0]
    if not ends:
        return None
    name, value = line[: min(ends)].strip(), line[min(ends) + 1 :].strip()
    is_name = name.isascii() and name.replace("-", "").isalnum()
    return (name.lower(), value.removesuffix("'").removesuffix('"').strip()) if is_name else None


def read_secret(text: str) -> bytes | None:
    """Return the bytes of a secret from its text form; None if the text is not a secret."""
    try:
        return base64.b64decode(text.strip().removeprefix(PREFIX), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def check_signature(
    headers: Mapping[str, str], body: str, secrets: Sequence[NamedSecret], *, now: datetime
) -> list[CheckStep]:
    """Return the result of each step, in the order in which a receiver checks them."""
    message_id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    signatures = headers.get(SIGNATURE, "")
    steps = [
        CheckStep("The three headers are there", *_check_headers(headers)),
        CheckStep("The time can be read", *_check_time_format(timestamp)),
        CheckStep("The time is near", *_check_time_difference(timestamp, now)),
        CheckStep("The signature has the right form", *_check_signature_format(signatures)),
        CheckStep("There is a secret to check with", *_check_secrets(secrets)),
    ]
    if not (message_id and timestamp.isascii() and timestamp.isdigit() and _split_signatures(signatures) and secrets):
        return [*steps, CheckStep("The signature fits", None, "Not checked, because of what is missing above.")]
    return [
        *steps,
        CheckStep("The signature fits", *_check_match(message_id, _to_seconds(timestamp), signatures, body, secrets)),
    ]


def _check_headers(headers: Mapping[str, str]) -> tuple[bool, str]:
    missing = [name for name in (ID, TIMESTAMP, SIGNATURE) if not headers.get(name)]
    if not missing:
        return True, "Every delivery has them."
    return False, f"Missing: {', '.join(missing)}. A proxy or a framework may have dropped or renamed it."


def _check_time_format(timestamp: str) -> tuple[bool | None, str]:
    if not timestamp:
        return None, "There is no time."
    if timestamp.isascii() and timestamp.isdigit():
        return True, "Seconds since 1970."
    return False, "It must be whole seconds since 1970, in digits."


def _check_time_difference(timestamp: str, now: datetime) -> tuple[bool | None, str]:
    if not (timestamp.isascii() and timestamp.isdigit()):
        return None, "There is no time that can be read."
    difference_s = _to_seconds(timestamp) - int(now.timestamp())
    if abs(difference_s) <= TOLERANCE_S:
        return True, f"{abs(difference_s)} seconds from now; receivers accept up to {TOLERANCE_S}."
    side = "old" if difference_s < 0 else "in the future"
    return (
        False,
        (
            f"It is {abs(difference_s)} seconds {side}; a receiver refuses more than {TOLERANCE_S}. A delivery that you"
            " pasted later is old for that reason; otherwise look at the clock of the receiver."
        ),
    )


def _to_seconds(timestamp: str) -> int:
    """Convert digits that a user pasted to a number; more than 15 digits are cut, because they are no time."""
    return int(timestamp[:15])


def _split_signatures(signatures: str) -> list[str]:
    return [signature for signature in signatures.split() if signature.startswith("v1,")]


def _check_signature_format(signatures: str) -> tuple[bool | None, str]:
    if not signatures:
        return None, "There is no signature."
    versioned = _split_signatures(signatures)
    if not versioned:
        return False, "It must begin with v1, and a comma, then base 64; several are separated by a space."
    for signature in versioned:
        try:
            if len(base64.b64decode(signature.removeprefix("v1,"), validate=True)) != _SIGNATURE_BYTES:
                raise ValueError
        except (binascii.Error, ValueError):
            return False, "What follows v1, is not the base 64 of 32 bytes: it may be cut, or escaped for an address."
    count = "One signature." if len(versioned) == 1 else "Several: the secret was rotated within the last 24 hours."
    return True, count


def _check_secrets(secrets: Sequence[NamedSecret]) -> tuple[bool, str]:
    if not secrets:
        return False, "Choose an endpoint, or paste a secret that begins with whsec_ and goes on in base 64."
    return True, "Checked with " + " and ".join(secret.name for secret in secrets) + "."


def _check_match(
    message_id: str, timestamp: int, signatures: str, body: str, secrets: Sequence[NamedSecret]
) -> tuple[bool, str]:
    for secret in secrets:
        if _is_signed(message_id, timestamp, signatures, body, secret):
            return True, f"It is the HMAC-SHA256 of id, time and body under {secret.name}."
    for change, original_body in _undo_common_changes(body):
        if any(_is_signed(message_id, timestamp, signatures, original_body, secret) for secret in secrets):
            return False, f"It would fit if {change}. Sign the raw bytes of the body, before anything reads them."
    return (
        False,
        (
            "Another body, id, time or secret was signed. Compare the secret first; then make sure that the body is the"
            " raw one, and not JSON that was read and written again."
        ),
    )


def _is_signed(message_id: str, timestamp: int, signatures: str, body: str, secret: NamedSecret) -> bool:
    expected = sign([secret.secret], message_id=message_id, timestamp=timestamp, body=body.encode())
    return expected in _split_signatures(signatures)


def _undo_common_changes(body: str) -> list[tuple[str, str]]:
    """Return common accidental changes of a body: what would undo each, and the body as it was before."""
    originals = [
        ("the white space around the body were not there", body.strip()),
        ("the line breaks were those of Unix", body.replace("\r\n", "\n")),
    ]
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return originals
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return [*originals, ("the JSON were written as it was sent, without spaces or escapes", compact)]
