"""Cryptographic commitments: the hash of some content with its own random salt.

Once content and salt are deleted, the commitment reveals nothing about the content, and a hash chain over commitments
can still be verified.
"""

import hmac
import os

SALT_BYTES = 32


def new_salt() -> bytes:
    return os.urandom(SALT_BYTES)


def commit(salt: bytes, content: bytes) -> bytes:
    return hmac.digest(salt, content, "sha256")
