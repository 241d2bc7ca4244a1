"""The key of the secrets, checked against the database before anything uses it."""

from typing import Any

import psycopg

from regulars.cli import database
from regulars.cli.output import CommandError, Exit
from regulars.kit import vault
from regulars.kit.settings import Settings
from regulars.organizations import sealing


def unlocked(settings: Settings, url: str) -> Settings:
    """The settings with the key in them. Call it while they still say whether the database is our own."""
    try:
        with database.connected(url) as connection:
            # A key that is made when the database already knows one would only be the wrong one.
            known = vault.known_fingerprint(connection)
            if settings.is_embedded and settings.secret_key is None:
                vault.take_over_new_key(settings.data_dir, known)
            complete = vault.with_key(settings, may_make=known is None)
            opened = vault.of(complete)
            vault.register(connection, opened)
            if opened.fingerprint is not None:
                sealing.write_sealed(connection, opened)
    except vault.VaultError as error:
        raise CommandError(str(error), code=Exit.USAGE) from error
    return complete


def missing_key(settings: Settings, connection: psycopg.Connection[Any]) -> str | None:
    """One sentence about the key that `regulars serve` will need on this database, if this machine has another or none.

    It is said when a backup is restored, because that is when the old machine's copy of the key can still be found.
    """
    has_table = connection.execute("SELECT to_regclass('vault_key') IS NOT NULL").fetchone() == (True,)
    needed = vault.known_fingerprint(connection) if has_table else None
    try:
        own = vault.of(vault.with_key(settings, may_make=False)).fingerprint
    except vault.VaultError as error:
        return str(error)
    if needed is None or needed == own:
        return None
    place = "REGULARS_SECRET_KEY" if settings.secret_key is not None or not settings.is_embedded else ""
    where = f"set {place} to it" if place else f"copy its {vault.KEY_FILE_NAME} into {settings.data_dir}"
    return (
        f"`regulars serve` will need the secret key with the fingerprint {needed}, which is not in the backup: {where}"
        " (on the machine of the backup it is REGULARS_SECRET_KEY or the file secret.key of the data folder)."
    )
