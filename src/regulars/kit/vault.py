"""Encrypt ("seal") and decrypt ("open") the secrets in the database with a key that is not in the database, so that a
copy of the database alone reveals none.

The key is the setting `secret_key`; without it, the embedded database uses a file in the data folder that only its
owner can read. The database stores a fingerprint of the key, and a server with another key does not start.
"""

import contextlib
import dataclasses
import hashlib
import os
import secrets
import stat
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from regulars.kit import disk
from regulars.kit.settings import Settings

KEY_FILE_NAME: Final = "secret.key"
NEW_KEY_FILE_NAME: Final = "secret.key.new"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
FINGERPRINT_CHARACTERS: Final = 16
# The first byte of a sealed value names the algorithm, so that another can be added.
_AES_256_GCM: Final = b"\x01"


class VaultError(Exception):
    """A key is missing or wrong, or a secret cannot be opened; the message is one sentence for the operator."""


class Vault:
    """Seals and opens secrets. A secret opens only with the `context` it was sealed with, such as `totp <user>`."""

    def __init__(self, key: str) -> None:
        self._cipher = AESGCM(_derive(key, b"regulars: secrets at rest"))
        self.fingerprint = hashlib.sha256(_derive(key, b"regulars: fingerprint")).hexdigest()[:FINGERPRINT_CHARACTERS]

    def seal(self, secret: bytes, *, context: str) -> bytes:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return _AES_256_GCM + nonce + self._cipher.encrypt(nonce, secret, context.encode())

    def open(self, sealed: bytes, *, context: str) -> bytes:
        nonce, content = sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        try:
            if sealed[:1] != _AES_256_GCM:
                raise InvalidTag
            return self._cipher.decrypt(nonce, content, context.encode())
        except (InvalidTag, ValueError):
            raise VaultError("A secret in the database cannot be opened with this key.") from None


class NoVault:
    """Used where no key is set: each use raises an error that says what to set."""

    fingerprint: Final = None

    def seal(self, _secret: bytes, *, context: str) -> bytes:
        raise VaultError(f"Set REGULARS_SECRET_KEY before the first secret is stored ({context.partition(' ')[0]}).")

    def open(self, _sealed: bytes, *, context: str) -> bytes:
        raise VaultError(f"Set REGULARS_SECRET_KEY: the database holds secrets ({context.partition(' ')[0]}).")


AnyVault = Vault | NoVault


def of(settings: Settings) -> AnyVault:
    """Return the vault for settings to which `with_key` has added the key."""
    return Vault(settings.secret_key) if settings.secret_key is not None else NoVault()


def with_key(settings: Settings, *, may_create_key: bool) -> Settings:
    """Add the key to the settings. For an embedded database it is in a file, which is made if `may_create_key`."""
    if settings.secret_key is not None or not settings.is_embedded:
        return settings
    path = settings.data_dir / KEY_FILE_NAME
    if not path.exists():
        if not may_create_key:
            return settings
        _make_key_file(path)
    return dataclasses.replace(settings, secret_key=_read_key_file(path))


def register_key(connection: psycopg.Connection[Any], vault: AnyVault) -> None:
    """Raise unless the database has the fingerprint of this key; if it has none, store it."""
    if vault.fingerprint is not None:
        connection.execute(
            "INSERT INTO vault_key (fingerprint, created_at) VALUES (%s, now()) ON CONFLICT DO NOTHING",
            (vault.fingerprint,),
        )
    stored = read_fingerprint(connection)
    if stored is None or stored == vault.fingerprint:
        return
    if vault.fingerprint is None:
        raise VaultError(
            f"The secret key is missing (REGULARS_SECRET_KEY, or {KEY_FILE_NAME} in the data folder of an embedded"
            f" database), and this database's secrets need the one with the fingerprint {stored}."
        )
    raise VaultError(
        f"The secret key has the fingerprint {vault.fingerprint}, and this database's secrets were sealed with"
        f" {stored}; start with that one (REGULARS_SECRET_KEY, or {KEY_FILE_NAME} in the data folder)."
    )


def read_fingerprint(connection: psycopg.Connection[Any]) -> str | None:
    row = connection.execute("SELECT fingerprint FROM vault_key").fetchone()
    return None if row is None else str(row[0])


class KnownKey(NamedTuple):
    """The fingerprint of the encryption key, and since when the database has no unencrypted copy of a secret."""

    fingerprint: str
    sealed_at: datetime | None


async def lock_known_key(connection: psycopg.AsyncConnection[Any]) -> KnownKey | None:
    """Lock the key against changes until the end of a transaction that stores a sealed value."""
    row = await (await connection.execute("SELECT fingerprint, sealed_at FROM vault_key FOR SHARE")).fetchone()
    return None if row is None else KnownKey(*row)


async def lock_key(connection: psycopg.AsyncConnection[Any], vault: AnyVault) -> None:
    """Lock the key first in a transaction that seals a value; raise if the vault has another key."""
    known = await lock_known_key(connection)
    if known is not None and vault.fingerprint is not None and vault.fingerprint != known.fingerprint:
        raise VaultError(f"The secret key was changed meanwhile; use the one with the fingerprint {known.fingerprint}.")


def mark_sealed(connection: psycopg.Connection[Any]) -> None:
    """Record that the database has no plain copies of secrets any more."""
    connection.execute("UPDATE vault_key SET sealed_at = coalesce(sealed_at, now())")


async def replace_fingerprint(connection: psycopg.AsyncConnection[Any], new: Vault) -> None:
    await connection.execute("UPDATE vault_key SET fingerprint = %s, created_at = now()", (new.fingerprint,))


def new_key_file(path: Path) -> Vault:
    """Return the vault that seals secrets with the key in this file; make the file if it is missing."""
    if not path.exists():
        _make_key_file(path)
    return Vault(_read_key_file(path))


def finish_key_rotation(folder: Path, stored: str | None) -> None:
    """Finish a rotation of the key: the new file replaces the current one, which is renamed to its fingerprint.

    Called after the commit of the rotation, and when a process starts, in case it was killed in between. `stored` is
    the fingerprint in the database.
    """
    new, current = folder / NEW_KEY_FILE_NAME, folder / KEY_FILE_NAME
    if not new.exists() or Vault(_read_key_file(new)).fingerprint != stored:
        return
    if current.exists():
        current.replace(folder / f"{KEY_FILE_NAME}.{Vault(_read_key_file(current)).fingerprint}")
        disk.sync(folder)
    new.replace(current)
    disk.sync(folder)


def _derive(key: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose).derive(key.encode())


def _make_key_file(path: Path) -> None:
    """Make the file atomically; if two commands start together, the first one wins, because a link replaces no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(prefix=f".{KEY_FILE_NAME}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        Path(unfinished).unlink()
    # After a power cut, a secret that was sealed with this key must not exist without the file that opens it.
    disk.sync(path.parent)


def _read_key_file(path: Path) -> str:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise VaultError(f"The key file {path} cannot be read: {error}.") from error
    if mode & 0o077:
        raise VaultError(f"The key file {path} can be read by others than its owner; run `chmod 600 {path}`.")
    if len(key) < KEY_BYTES:
        raise VaultError(f"The key file {path} is damaged; bring it back from where you keep copies of it.")
    return key
