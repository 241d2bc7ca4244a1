"""The second factor: codes of an authenticator app, each of which works once, and recovery codes for a lost phone."""

import hashlib
import hmac
import io
import secrets
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

import pyotp
import segno

from regulars.accounts.errors import FactorIsOn, WrongCode
from regulars.kit.commitments import commit, new_salt
from regulars.kit.db import Tx
from regulars.kit.vault import AnyVault

ISSUER: Final = "Regulars"
# A code of an authenticator app is valid for one step of 30 seconds.
STEP_S: Final = 30
# The clock of a phone may be one step off.
STEPS_AROUND: Final = 1
RECOVERY_CODES: Final = 10
RECOVERY_CHARACTERS: Final = 10
_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"
_CODE_DIGITS: Final = 6
_SELECT_FACTOR: Final = "SELECT totp_secret, totp_step FROM users WHERE id = %s AND totp_enabled_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class TotpSetup:
    """A new secret for an authenticator app: as text, as the address that apps read, and as a QR code."""

    secret: str
    uri: str
    qr_svg: str


class _Factor(NamedTuple):
    sealed_secret: bytes
    # The last step whose code was used.
    step: int | None


def new_setup(email: str, secret: str | None = None) -> TotpSetup:
    secret = secret or pyotp.random_base32()
    uri = pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER)
    picture = io.BytesIO()
    # No inline style and no size: the content security policy forbids styles, and the style sheet sets the size.
    segno.make(uri, error="m").save(
        picture, kind="svg", xmldecl=False, svgns=True, omitsize=True, svgclass="qr", lineclass=None, border=2
    )
    return TotpSetup(secret, uri, picture.getvalue().decode())


async def enable(tx: Tx, vault: AnyVault, user_id: UUID, *, secret: str, code: str) -> list[str]:
    """Turn the second factor on, with a code that proves that the app has the secret; return the recovery codes.

    An existing second factor is not replaced: otherwise a password alone would be enough to take it over.
    """
    if await _lock_factor(tx, user_id) is not None:
        raise FactorIsOn
    step = matching_step(secret, code, tx.now.timestamp(), after=None)
    if step is None:
        raise WrongCode
    sealed = vault.seal(secret.encode(), context=_context(user_id))
    await tx.execute(
        "UPDATE users SET totp_secret = %s, totp_enabled_at = %s, totp_step = %s WHERE id = %s",
        (sealed, tx.now, step, user_id),
    )
    return await renew_recovery_codes(tx, user_id)


async def disable(tx: Tx, user_id: UUID) -> None:
    await tx.execute(
        "UPDATE users SET totp_secret = NULL, totp_enabled_at = NULL, totp_step = NULL WHERE id = %s", (user_id,)
    )
    await _delete_recovery_codes(tx, user_id)


async def renew_recovery_codes(tx: Tx, user_id: UUID) -> list[str]:
    """Replace the recovery codes by ten new ones."""
    codes = ["".join(secrets.choice(_ALPHABET) for _ in range(RECOVERY_CHARACTERS)) for _ in range(RECOVERY_CODES)]
    await _delete_recovery_codes(tx, user_id)
    for code in codes:
        salt = new_salt()
        await tx.execute(
            "INSERT INTO recovery_codes (user_id, code_hash, salt, created_at) VALUES (%s, %s, %s, %s)",
            (user_id, _hash(code, salt), salt, tx.now),
        )
    return [f"{code[:5]}-{code[5:]}" for code in codes]


async def count_recovery_codes(tx: Tx, user_id: UUID) -> int:
    return await tx.fetch_count(
        "SELECT count(*) FROM recovery_codes WHERE user_id = %s AND used_at IS NULL", (user_id,)
    )


async def is_enabled(tx: Tx, user_id: UUID) -> bool:
    return bool(await tx.fetch(_SELECT_FACTOR, (user_id,)))


async def check(tx: Tx, vault: AnyVault, user_id: UUID, code: str) -> None:
    """Use up a code of the app or a recovery code; raises WrongCode. The user's row is locked, so that two requests
    cannot use the same code."""
    factor = await _lock_factor(tx, user_id)
    if factor is None:
        raise WrongCode
    text = code.replace(" ", "").replace("-", "").lower()
    if len(text) == _CODE_DIGITS and text.isascii() and text.isdigit():
        secret = vault.open(factor.sealed_secret, context=_context(user_id)).decode()
        step = matching_step(secret, text, tx.now.timestamp(), after=factor.step)
        if step is None:
            raise WrongCode
        await tx.execute("UPDATE users SET totp_step = %s WHERE id = %s", (step, user_id))
    elif not await _use_recovery_code(tx, user_id, text):
        raise WrongCode


async def reseal(tx: Tx, old: AnyVault, new: AnyVault) -> int:
    """Encrypt the second factors of all users with another key; the factors themselves do not change."""
    rows = await tx.fetch("SELECT id, totp_secret FROM users WHERE totp_secret IS NOT NULL FOR UPDATE")
    for user_id, sealed in rows:
        secret = old.open(bytes(sealed), context=_context(user_id))
        resealed = new.seal(secret, context=_context(user_id))
        await tx.execute("UPDATE users SET totp_secret = %s WHERE id = %s", (resealed, user_id))
    return len(rows)


def matching_step(secret: str, code: str, at_s: float, *, after: int | None) -> int | None:
    """Find the 30-second step that has this code, near the time `at_s`; codes of steps up to `after` were used."""
    current = int(at_s // STEP_S)
    generator = pyotp.HOTP(secret)
    code_bytes = code.replace(" ", "").encode()
    for step in range(current - STEPS_AROUND, current + STEPS_AROUND + 1):
        if (after is None or step > after) and hmac.compare_digest(generator.at(step).encode(), code_bytes):
            return step
    return None


async def _lock_factor(tx: Tx, user_id: UUID) -> _Factor | None:
    rows = await tx.fetch(_SELECT_FACTOR + " FOR UPDATE", (user_id,))
    return _Factor(bytes(rows[0][0]), rows[0][1]) if rows else None


async def _use_recovery_code(tx: Tx, user_id: UUID, code: str) -> bool:
    rows = await tx.fetch(
        "SELECT code_hash, salt FROM recovery_codes WHERE user_id = %s AND used_at IS NULL", (user_id,)
    )
    for code_hash, salt in rows:
        if hmac.compare_digest(_hash(code, None if salt is None else bytes(salt)), bytes(code_hash)):
            count = await tx.execute(
                "UPDATE recovery_codes SET used_at = %s WHERE user_id = %s AND code_hash = %s AND used_at IS NULL",
                (tx.now, user_id, code_hash),
            )
            return count == 1
    return False


async def _delete_recovery_codes(tx: Tx, user_id: UUID) -> None:
    await tx.execute("DELETE FROM recovery_codes WHERE user_id = %s", (user_id,))


def _context(user_id: UUID) -> str:
    return f"totp {user_id}"


def _hash(code: str, salt: bytes | None) -> bytes:
    """Hash a recovery code. It has only 49 random bits: without a salt, one search would find the codes of all users.
    Codes of older releases have no salt."""
    content = code.encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).digest() if salt is None else commit(salt, content)
