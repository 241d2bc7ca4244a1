"""The secret of an organization: the key that hashes phone numbers and signs cursors and callback addresses. It never
changes.

The database stores it sealed (encrypted), plain, or both. A process has one encryption key, so the vault, which opens
sealed secrets with it, is set once per process. Each secret is decrypted once per process and then cached.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from regulars.kit.bounded_cache import BoundedCache
from regulars.kit.vault import AnyVault, NoVault

CACHED_SECRETS_MAX: Final = 10_000

# Decrypted secrets, by their sealed form.
_cached_secrets: Final = BoundedCache[bytes, bytes](CACHED_SECRETS_MAX)
_find_vault: Callable[[], AnyVault] = NoVault


def set_vault_finder(find_vault: Callable[[], AnyVault]) -> None:
    """Set the function that returns the vault of this process; it is called when the first sealed secret is read."""
    global _find_vault  # noqa: PLW0603  # a process has one key
    _find_vault = find_vault
    _cached_secrets.clear()


def current_vault() -> AnyVault:
    return _find_vault()


def seal_secret(vault: AnyVault, organization_id: UUID, secret: bytes) -> bytes:
    return vault.seal(secret, context=context_of(organization_id))


def open_secret(organization_id: UUID, plain: bytes | None, sealed: bytes | None) -> bytes:
    """Return the secret of a row of `organizations`; raises `VaultError` if the encryption key is missing."""
    if plain is not None:
        return bytes(plain)
    if sealed is None:
        raise LookupError(f"The organization {organization_id} has no secret.")
    sealed = bytes(sealed)
    secret = _cached_secrets.entries.get(sealed)
    if secret is None:
        secret = _cached_secrets.add(sealed, current_vault().open(sealed, context=context_of(organization_id)))
    return secret


def context_of(organization_id: UUID) -> str:
    return f"organization {organization_id}"
