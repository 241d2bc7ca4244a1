"""`regulars vault`: encrypt the secrets that the database still stores in plain text, and replace the key."""

from pathlib import Path
from typing import Annotated

import typer

from regulars.accounts.second_factor import reseal as reseal_factors
from regulars.cli import database, database_pool
from regulars.cli.output import CommandError, ExitCode, err, format_count
from regulars.kit import releases, settings
from regulars.kit import vault as vaults
from regulars.kit.db import Database
from regulars.kit.settings import Settings
from regulars.organizations import sealing
from regulars.processes import in_use, serve_lock
from regulars.texts.settings.store import reseal as reseal_credentials
from regulars.webhooks.secrets import reseal as reseal_webhooks

app = typer.Typer(no_args_is_help=True)


@app.command()
def seal() -> None:
    """Replace the plain secrets of organizations by encrypted ones, which only the key opens.

    Servers and workers that have the key may keep running; the command is refused while one without it is connected.
    If the key is lost, erased and opted-out numbers can no longer be recognized.
    """
    loaded = settings.load()
    with database.ready(loaded) as url:
        vault = _load_vault(loaded, url)
        with database.connected(url) as connection:
            processes = in_use.list_processes(connection)
            if any(process.release < sealing.SEALED_SINCE for process in processes):
                raise CommandError(
                    "A server or worker of an older release is connected, which cannot read encrypted secrets; upgrade"
                    " or stop all of them, then try again."
                )
            if any(process.fingerprint != vault.fingerprint for process in processes):
                raise CommandError(
                    f"A connected server or worker does not have the key {vault.fingerprint}; restart all of them with"
                    " it (REGULARS_SECRET_KEY), then try again."
                )
            with connection.transaction():
                count = sealing.delete_plain_secrets(connection, vault)
                releases.exclude_older(connection, than=sealing.SEALED_SINCE)
            # Without VACUUM, the old row versions with plain secrets would stay in the files until their space is
            # reused.
            connection.execute("VACUUM organizations")
    err.print(
        f"Encrypted the secrets of {format_count(count, 'organization')} with the key {vault.fingerprint}.",
        markup=False,
    )
    err.print("Older backups contain them in plain text: delete those, or protect them like the key.", markup=False)


@app.command()
def rotate(
    new_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the new key, created if it does not exist; required if REGULARS_SECRET_KEY holds the key.",
        ),
    ] = None,
) -> None:
    """Encrypt all secrets with a new key. Stop all servers and workers first."""
    loaded = settings.load()
    is_file = loaded.is_embedded and loaded.secret_key is None
    if is_file == (new_key is not None):
        raise CommandError(
            f"The key is in {loaded.data_dir / vaults.KEY_FILE_NAME}, and the new one will be too; leave out --new-key."
            if is_file
            else "Name a file with --new-key: it contains the new key, or gets one, for REGULARS_SECRET_KEY.",
            code=ExitCode.USAGE,
        )
    with (
        serve_lock.hold(loaded),
        database.ready(loaded) as url,
        database.connected(url) as connection,
        in_use.exclusive(connection),
    ):
        old = _load_vault(loaded, url)
        new = vaults.new_key_file(new_key or loaded.data_dir / vaults.NEW_KEY_FILE_NAME)
        if new.fingerprint == old.fingerprint:
            raise CommandError(f"The file {new_key} contains the current key; name another one.", code=ExitCode.USAGE)
        count = database_pool.run_on_pool(url, lambda pool: _reseal(pool, old, new))
        if is_file:
            vaults.finish_key_rotation(loaded.data_dir, new.fingerprint)
    err.print(f"Encrypted {format_count(count, 'secret')} with the key {new.fingerprint}.", markup=False)
    old_key = f"{loaded.data_dir / vaults.KEY_FILE_NAME}.{old.fingerprint}" if is_file else "the old one"
    if not is_file:
        err.print(f"Set REGULARS_SECRET_KEY to the content of {new_key} on every node, then start them.", markup=False)
    err.print(f"Copy the new key to a safe place. Older backups need {old_key}.", markup=False)


async def _reseal(pool: Database, old: vaults.Vault, new: vaults.Vault) -> int:
    async with pool.transaction() as tx:
        # The fingerprint is replaced first, because that locks its row: a command that is about to seal a value waits
        # for this transaction, and a value that was sealed before is committed by now and sealed again with the others.
        await vaults.replace_fingerprint(tx.connection, new)
        resealers = (sealing.reseal, reseal_factors, reseal_credentials, reseal_webhooks)
        return sum([await reseal(tx, old, new) for reseal in resealers])


def _load_vault(loaded: Settings, url: str) -> vaults.Vault:
    vault = vaults.of(database.with_secret_key(loaded, url))
    if isinstance(vault, vaults.NoVault):
        raise CommandError("Set REGULARS_SECRET_KEY first: there is no key to encrypt with.", code=ExitCode.USAGE)
    return vault
