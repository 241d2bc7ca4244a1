"""Flash messages: a sentence that the next page shows once, carried in a signed cookie."""

import base64
import binascii
import hashlib
import hmac
from typing import Final

# How long the browser keeps the cookie.
FLASH_S: Final = 60
TEXT_CHARACTERS_MAX: Final = 300
_SIGNATURE_BYTES: Final = 16


def pack(text: str, secret: str) -> str:
    """Sign the text. `secret` belongs to the session, so that no other session accepts the message."""
    payload = text[:TEXT_CHARACTERS_MAX].encode()
    return base64.urlsafe_b64encode(_sign(payload, secret) + payload).decode()


def unpack(value: str, secret: str) -> str | None:
    """The text of the cookie; None if the signature is wrong."""
    try:
        decoded = base64.urlsafe_b64decode(value)
        signature, payload = decoded[:_SIGNATURE_BYTES], decoded[_SIGNATURE_BYTES:]
        return payload.decode() if hmac.compare_digest(signature, _sign(payload, secret)) else None
    except (binascii.Error, UnicodeError, ValueError):
        return None


def _sign(payload: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), b"flash" + payload, hashlib.sha256)[:_SIGNATURE_BYTES]
