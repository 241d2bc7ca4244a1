"""The secret of an organization, with which numbers, cursors and callback addresses are keyed: it never changes.

It lies in the database sealed, plain, or both. A process has one key, so the vault is set once for the whole process.
What was unsealed is remembered by its sealed form: an organization's secret is opened once in a process, whatever the
number of requests.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from regulars.kit.vault import AnyVault, NoVault

OPENED_MAX: Final = 10_000

_opened: Final[dict[bytes, bytes]] = {}
_find_vault: Callable[[], AnyVault] = NoVault


def unlock_with(find_vault: Callable[[], AnyVault]) -> None:
    """Set where this process finds its vault; it is asked for when the first sealed secret is met."""
    global _find_vault  # noqa: PLW0603  # a process has one key
    _find_vault = find_vault
    _opened.clear()


def current_vault() -> AnyVault:
    return _find_vault()


def seal_secret(vault: AnyVault, organization_id: UUID, secret: bytes) -> bytes:
    return vault.seal(secret, context=context_of(organization_id))


def open_secret(organization_id: UUID, plain: bytes | None, sealed: bytes | None) -> bytes:
    """The secret of a row of `organizations`; raises `VaultError` where it is sealed and the key is missing."""
    if plain is not None:
        return bytes(plain)
    if sealed is None:
        raise LookupError(f"The organization {organization_id} has no secret.")
    sealed = bytes(sealed)
    secret = _opened.get(sealed)
    if secret is None:
        secret = current_vault().open(sealed, context=context_of(organization_id))
        if len(_opened) >= OPENED_MAX:
            _opened.clear()
        _opened[sealed] = secret
    return secret


def context_of(organization_id: UUID) -> str:
    return f"organization {organization_id}"
