"""Create, format and encrypt the secrets that sign deliveries; an encrypted secret can be opened only for its
endpoint."""

import base64
from functools import partial
from secrets import token_bytes
from typing import Final
from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.vault import AnyVault
from regulars.webhooks.queries import endpoints as queries

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32


def new_secret() -> bytes:
    return token_bytes(SECRET_BYTES)


def format_secret(secret: bytes) -> str:
    """Return the secret in the text form of Standard Webhooks."""
    return PREFIX + base64.b64encode(secret).decode()


def seal_secret(vault: AnyVault, endpoint_id: UUID, secret: bytes) -> bytes:
    return vault.seal(secret, context=f"webhook {endpoint_id}")


def open_secret(vault: AnyVault, endpoint_id: UUID, sealed: bytes) -> bytes:
    return vault.open(sealed, context=f"webhook {endpoint_id}")


async def reseal(tx: Tx, old: AnyVault, new: AnyVault) -> int:
    """Encrypt the secrets of all endpoints with another key; the secrets themselves do not change."""
    endpoints = await queries.list_secrets(tx)
    for organization_id, endpoint_id, sealed in endpoints:
        reseal_one = partial(_reseal_one, old, new, endpoint_id)
        old_secret = None if sealed.old_secret is None else reseal_one(sealed.old_secret)
        resealed = queries.SealedSecrets(reseal_one(sealed.secret), old_secret, sealed.old_secret_until)
        await queries.update_secrets(tx, organization_id, endpoint_id, resealed)
    return len(endpoints)


def _reseal_one(old: AnyVault, new: AnyVault, endpoint_id: UUID, sealed: bytes) -> bytes:
    return seal_secret(new, endpoint_id, open_secret(old, endpoint_id, sealed))
