"""The second factor: codes of an sessions app, each of which works once, and recovery codes for a lost phone."""

import hashlib
import hmac
import io
import secrets
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import pyotp
import segno

from regulars.accounts.errors import FactorIsOn, WrongCode
from regulars.accounts.factor import queries
from regulars.kit.commitments import commit, new_salt
from regulars.kit.db import Tx
from regulars.kit.vault import AnyVault

ISSUER: Final = "Regulars"
STEP_S: Final = 30
# A phone's clock may be one step off.
STEPS_AROUND: Final = 1
RECOVERY_CODES: Final = 10
RECOVERY_CHARACTERS: Final = 10
_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"
_CODE_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Offer:
    """A secret that is being set up: as text, as the address that apps read, and as a picture of it."""

    secret: str
    uri: str
    qr_svg: str


def new_offer(email: str, secret: str | None = None) -> Offer:
    secret = secret or pyotp.random_base32()
    uri = pyotp.TOTP(secret).provisioning_uri(name=email, issuer_name=ISSUER)
    picture = io.BytesIO()
    # No inline style and no size: the policy forbids the one, and the style sheet gives the other.
    segno.make(uri, error="m").save(
        picture, kind="svg", xmldecl=False, svgns=True, omitsize=True, svgclass="qr", lineclass=None, border=2
    )
    return Offer(secret, uri, picture.getvalue().decode())


async def enable(tx: Tx, vault: AnyVault, user_id: UUID, *, secret: str, code: str) -> list[str]:
    """Turn it on with a code that proves the app has the secret; the recovery codes are shown this once.

    One that is on is not replaced: a password alone would take it over.
    """
    if await queries.lock_factor(tx, user_id) is not None:
        raise FactorIsOn
    step = matching_step(secret, code, tx.now.timestamp(), after=None)
    if step is None:
        raise WrongCode
    sealed = vault.seal(secret.encode(), context=_context(user_id))
    await queries.set_factor(tx, user_id, sealed=sealed, step=step)
    return await renew_recovery_codes(tx, user_id)


async def disable(tx: Tx, user_id: UUID) -> None:
    await queries.drop_factor(tx, user_id)
    await queries.delete_recovery_codes(tx, user_id)


async def renew_recovery_codes(tx: Tx, user_id: UUID) -> list[str]:
    """Ten new ones; the old ones end."""
    codes = ["".join(secrets.choice(_ALPHABET) for _ in range(RECOVERY_CHARACTERS)) for _ in range(RECOVERY_CODES)]
    await queries.delete_recovery_codes(tx, user_id)
    for code in codes:
        salt = new_salt()
        await queries.insert_recovery_code(tx, user_id, salt=salt, code_hash=_hash(code, salt))
    return [f"{code[:5]}-{code[5:]}" for code in codes]


async def count_recovery_codes(tx: Tx, user_id: UUID) -> int:
    return await queries.count_recovery_codes(tx, user_id)


async def is_enabled(tx: Tx, user_id: UUID) -> bool:
    return await queries.find_factor(tx, user_id) is not None


async def check(tx: Tx, vault: AnyVault, user_id: UUID, code: str) -> None:
    """Take a code of the app, or a recovery code. The user's row is locked: two cannot take one code at once."""
    factor = await queries.lock_factor(tx, user_id)
    if factor is None:
        raise WrongCode
    text = code.replace(" ", "").replace("-", "").lower()
    if len(text) == _CODE_DIGITS and text.isascii() and text.isdigit():
        secret = vault.open(factor.sealed, context=_context(user_id)).decode()
        step = matching_step(secret, text, tx.now.timestamp(), after=factor.step)
        if step is None:
            raise WrongCode
        await queries.set_step(tx, user_id, step)
    elif not await _use_recovery_code(tx, user_id, text):
        raise WrongCode


async def reseal(tx: Tx, old: AnyVault, new: AnyVault) -> int:
    """Seal the second factors of all users with another key; the factors themselves stay."""
    sealed_ones = await queries.list_sealed(tx)
    for user_id, sealed in sealed_ones:
        secret = old.open(sealed, context=_context(user_id))
        await queries.replace_sealed(tx, user_id, new.seal(secret, context=_context(user_id)))
    return len(sealed_ones)


async def _use_recovery_code(tx: Tx, user_id: UUID, code: str) -> bool:
    for code_hash, salt in await queries.list_recovery_codes(tx, user_id):
        if hmac.compare_digest(_hash(code, salt), code_hash):
            return await queries.use_recovery_code(tx, user_id, code_hash)
    return False


def matching_step(secret: str, code: str, at_s: float, *, after: int | None) -> int | None:
    """The step of 30 seconds whose code this is; steps up to the last one taken are over."""
    current = int(at_s // STEP_S)
    generator = pyotp.HOTP(secret)
    given = code.replace(" ", "").encode()
    for step in range(current - STEPS_AROUND, current + STEPS_AROUND + 1):
        if (after is None or step > after) and hmac.compare_digest(generator.at(step).encode(), given):
            return step
    return None


def _context(user_id: UUID) -> str:
    return f"totp {user_id}"


def _hash(code: str, salt: bytes | None) -> bytes:
    """A code has 49 random bits: without a salt, one search would find the codes of all users. Older ones have none."""
    content = code.encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).digest() if salt is None else commit(salt, content)
