"""The token of a provider's account: sealed in the database, for this organization and no other."""

from uuid import UUID

from regulars.kit.db import Tx
from regulars.kit.vault import AnyVault, VaultError
from regulars.messaging.settings.store import Texting, list_sealed, replace_sealed


def seal_token(vault: AnyVault, organization_id: UUID, token: str) -> bytes:
    return vault.seal(token.encode(), context=_context(organization_id))


def open_token(vault: AnyVault, texting: Texting) -> str:
    if texting.sealed is None:
        raise VaultError("The provider's account has no token.")
    return vault.open(texting.sealed, context=_context(texting.organization_id)).decode()


async def reseal(tx: Tx, old: AnyVault, new: AnyVault) -> int:
    """Seal the tokens of all organizations with another key; the tokens themselves stay."""
    sealed_ones = await list_sealed(tx)
    for organization_id, sealed in sealed_ones:
        token = old.open(sealed, context=_context(organization_id)).decode()
        await replace_sealed(tx, organization_id, seal_token(new, organization_id, token))
    return len(sealed_ones)


def _context(organization_id: UUID) -> str:
    return f"sms {organization_id}"
