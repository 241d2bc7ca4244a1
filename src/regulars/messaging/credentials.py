"""The token of a provider's account: sealed in the database, for this organization and no other."""

from uuid import UUID

from regulars.kit.vault import AnyVault, VaultError
from regulars.messaging.settings.store import Texting


def seal_token(vault: AnyVault, organization_id: UUID, token: str) -> bytes:
    return vault.seal(token.encode(), context=_context(organization_id))


def open_token(vault: AnyVault, texting: Texting) -> str:
    if texting.sealed is None:
        raise VaultError("The provider's account has no token.")
    return vault.open(texting.sealed, context=_context(texting.organization_id)).decode()


def _context(organization_id: UUID) -> str:
    return f"sms {organization_id}"
