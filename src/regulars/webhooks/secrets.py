"""Create, format and encrypt the secrets that sign deliveries; an encrypted secret can be decrypted only for its
endpoint. The vault encrypts with a key outside the database."""

import base64
from datetime import datetime
from functools import partial
from secrets import token_bytes
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.vault import AnyVault
from regulars.webhooks.queries import endpoints as queries
from regulars.webhooks.queries.endpoints import EncryptedSecrets

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32


def new_secret() -> bytes:
    return token_bytes(SECRET_BYTES)


def format_secret(secret: bytes) -> str:
    """Return the secret in the text form of Standard Webhooks."""
    return PREFIX + base64.b64encode(secret).decode()


def encrypt_secret(vault: AnyVault, endpoint_id: UUID, secret: bytes) -> bytes:
    return vault.seal(secret, context=f"webhook {endpoint_id}")


def decrypt_secret(vault: AnyVault, endpoint_id: UUID, encrypted: bytes) -> bytes:
    return vault.open(encrypted, context=f"webhook {endpoint_id}")


def decrypt_valid_secrets(
    vault: AnyVault, endpoint_id: UUID, encrypted: EncryptedSecrets, *, now: datetime
) -> list[bytes]:
    """Return the secrets that sign now: the current one, and for 24 hours after a rotation the previous one."""
    valid = [encrypted.secret]
    if encrypted.old_secret is not None and encrypted.old_secret_until is not None and now < encrypted.old_secret_until:
        valid.append(encrypted.old_secret)
    return [decrypt_secret(vault, endpoint_id, secret) for secret in valid]


async def reseal(tx: Tx, old: AnyVault, new: AnyVault) -> int:
    """Encrypt the secrets of all endpoints with another key; the secrets themselves do not change."""
    endpoints = await queries.list_secrets(tx)
    for organization_id, endpoint_id, encrypted in endpoints:
        reencrypt = partial(_reencrypt, old, new, endpoint_id)
        old_secret = None if encrypted.old_secret is None else reencrypt(encrypted.old_secret)
        reencrypted = EncryptedSecrets(reencrypt(encrypted.secret), old_secret, encrypted.old_secret_until)
        await queries.update_secrets(tx, organization_id, endpoint_id, reencrypted)
    return len(endpoints)


def _reencrypt(old: AnyVault, new: AnyVault, endpoint_id: UUID, encrypted: bytes) -> bytes:
    return encrypt_secret(new, endpoint_id, decrypt_secret(old, endpoint_id, encrypted))
