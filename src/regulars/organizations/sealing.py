"""Seal (encrypt) the secrets of organizations: first in addition to the plain secrets, later instead of them; and seal
them again with another key."""

import hmac
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from regulars.kit.connection import Connection
from regulars.kit.db import Tx
from regulars.kit.vault import AnyVault, VaultError, lock_known_key, mark_sealed
from regulars.organizations.secret import context_of, current_vault, seal_secret

# The first release that reads sealed secrets, by its newest migration.
SEALED_SINCE: Final = 97


class StoredSecret(NamedTuple):
    """The two columns of an organization's secret; the plain one is filled only while older releases may read it."""

    plain: bytes | None
    sealed: bytes | None


async def make_stored_secret(connection: Connection, organization_id: UUID, secret: bytes) -> StoredSecret:
    """Decide how to store the secret of a new organization: plain if this process lacks the database's key; raises
    VaultError if plain secrets are no longer allowed.

    Call it in the transaction that inserts the row: until it ends, no plain secret is deleted and the key is not
    changed.
    """
    known_key = await lock_known_key(connection)
    vault = current_vault()
    if known_key is None or vault.fingerprint != known_key.fingerprint:
        if known_key is not None and known_key.sealed_at is not None:
            raise VaultError(
                f"Set REGULARS_SECRET_KEY to the key with the fingerprint {known_key.fingerprint}: the secrets of"
                " organizations are sealed with it."
            )
        return StoredSecret(secret, None)
    sealed = seal_secret(vault, organization_id, secret)
    return StoredSecret(None if known_key.sealed_at is not None else secret, sealed)


def write_sealed(connection: psycopg.Connection[Any], vault: AnyVault) -> int:
    """Seal the secrets that are only stored plain, and store both forms; return how many."""
    rows = connection.execute(
        "SELECT id, secret FROM organizations WHERE sealed_secret IS NULL AND secret IS NOT NULL"
    ).fetchall()
    for identifier, secret in rows:
        connection.execute(
            "UPDATE organizations SET sealed_secret = %s WHERE id = %s AND sealed_secret IS NULL",
            (seal_secret(vault, identifier, secret), identifier),
        )
    return len(rows)


def delete_plain_secrets(connection: psycopg.Connection[Any], vault: AnyVault) -> int:
    """Delete the plain secrets, if each sealed one decrypts to its plain one; return the number of organizations.

    Call it in a transaction. The table lock prevents new organizations meanwhile, whose secret would be stored plain.
    """
    # Called before the table is locked, in the same order as in `make_stored_secret`: otherwise the two could deadlock.
    mark_sealed(connection)
    connection.execute("LOCK TABLE organizations IN SHARE ROW EXCLUSIVE MODE")
    write_sealed(connection, vault)
    rows = connection.execute("SELECT id, secret, sealed_secret FROM organizations").fetchall()
    for identifier, secret, sealed in rows:
        opened = vault.open(sealed, context=context_of(identifier))
        if secret is not None and not hmac.compare_digest(opened, secret):
            raise VaultError(f"The sealed secret of the organization {identifier} is not its plain one.")
    connection.execute("UPDATE organizations SET secret = NULL WHERE secret IS NOT NULL")
    return len(rows)


async def reseal(tx: Tx, old: AnyVault, new: AnyVault) -> int:
    """Encrypt every secret with another key; the secrets themselves do not change."""
    rows = await tx.fetch("SELECT id, sealed_secret FROM organizations WHERE sealed_secret IS NOT NULL FOR UPDATE")
    for identifier, sealed in rows:
        resealed = seal_secret(new, identifier, old.open(sealed, context=context_of(identifier)))
        await tx.execute("UPDATE organizations SET sealed_secret = %s WHERE id = %s", (resealed, identifier))
    return len(rows)
