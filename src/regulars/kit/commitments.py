"""Commitments: a hash of some content with a random salt, one salt per content.

Once content and salt are deleted the commitment reveals nothing about the content, and hashes computed over the
commitment still verify.
"""

import hmac
import os

SALT_BYTES = 32


def new_salt() -> bytes:
    return os.urandom(SALT_BYTES)


def commit(salt: bytes, content: bytes) -> bytes:
    return hmac.digest(salt, content, "sha256")
