"""The secrets of endpoints at rest: sealed, each for its endpoint."""

from uuid import UUID

from regulars.kit.vault import AnyVault


def seal_secret(vault: AnyVault, endpoint_id: UUID, secret: bytes) -> bytes:
    return vault.seal(secret, context=f"webhook {endpoint_id}")


def open_secret(vault: AnyVault, endpoint_id: UUID, sealed: bytes) -> bytes:
    return vault.open(sealed, context=f"webhook {endpoint_id}")
