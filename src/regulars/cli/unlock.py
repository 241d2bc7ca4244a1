"""The key of the secrets, checked against the database before anything uses it."""

from regulars.cli import database
from regulars.cli.output import CommandError, Exit
from regulars.kit import vault
from regulars.kit.settings import Settings


def unlocked(settings: Settings, url: str) -> Settings:
    """The settings with the key in them. Call it while they still say whether the database is our own."""
    try:
        with database.connected(url) as connection:
            # A key that is made when the database already knows one would only be the wrong one.
            complete = vault.with_key(settings, may_make=vault.known_fingerprint(connection) is None)
            vault.register(connection, vault.of(complete))
    except vault.VaultError as error:
        raise CommandError(str(error), code=Exit.USAGE) from error
    return complete
