"""Signatures and secrets as Standard Webhooks has them."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32


def new_secret() -> bytes:
    return secrets.token_bytes(SECRET_BYTES)


def show_secret(secret: bytes) -> str:
    return PREFIX + base64.b64encode(secret).decode()


def sign(secrets_: Sequence[bytes], *, message_id: str, timestamp: int, body: bytes) -> str:
    """One signature for each secret, so that a receiver may know the old one or the new one."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return " ".join(
        f"v1,{base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()}" for secret in secrets_
    )
