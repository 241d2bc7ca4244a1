"""The statements on the second factor's columns of `users`, and on `recovery_codes`."""

from typing import NamedTuple
from uuid import UUID

from regulars.kit.db import Tx


class Factor(NamedTuple):
    sealed: bytes
    step: int | None


async def find_factor(tx: Tx, user_id: UUID) -> Factor | None:
    rows = await tx.fetch(
        "SELECT totp_secret, totp_step FROM users WHERE id = %s AND totp_enabled_at IS NOT NULL", (user_id,)
    )
    return Factor(bytes(rows[0][0]), rows[0][1]) if rows else None


async def lock_factor(tx: Tx, user_id: UUID) -> Factor | None:
    rows = await tx.fetch(
        "SELECT totp_secret, totp_step FROM users WHERE id = %s AND totp_enabled_at IS NOT NULL FOR UPDATE", (user_id,)
    )
    return Factor(bytes(rows[0][0]), rows[0][1]) if rows else None


async def set_factor(tx: Tx, user_id: UUID, *, sealed: bytes, step: int) -> None:
    await tx.execute(
        "UPDATE users SET totp_secret = %s, totp_enabled_at = %s, totp_step = %s WHERE id = %s",
        (sealed, tx.now, step, user_id),
    )


async def list_sealed(tx: Tx) -> list[tuple[UUID, bytes]]:
    rows = await tx.fetch("SELECT id, totp_secret FROM users WHERE totp_secret IS NOT NULL FOR UPDATE")
    return [(row[0], bytes(row[1])) for row in rows]


async def replace_sealed(tx: Tx, user_id: UUID, sealed: bytes) -> None:
    await tx.execute("UPDATE users SET totp_secret = %s WHERE id = %s", (sealed, user_id))


async def set_step(tx: Tx, user_id: UUID, step: int) -> None:
    await tx.execute("UPDATE users SET totp_step = %s WHERE id = %s", (step, user_id))


async def drop_factor(tx: Tx, user_id: UUID) -> None:
    await tx.execute(
        "UPDATE users SET totp_secret = NULL, totp_enabled_at = NULL, totp_step = NULL WHERE id = %s", (user_id,)
    )


async def insert_recovery_code(tx: Tx, user_id: UUID, *, salt: bytes, code_hash: bytes) -> None:
    await tx.execute(
        "INSERT INTO recovery_codes (user_id, code_hash, salt, created_at) VALUES (%s, %s, %s, %s)",
        (user_id, code_hash, salt, tx.now),
    )


async def list_recovery_codes(tx: Tx, user_id: UUID) -> list[tuple[bytes, bytes | None]]:
    """Hash and salt of those that were not used."""
    rows = await tx.fetch(
        "SELECT code_hash, salt FROM recovery_codes WHERE user_id = %s AND used_at IS NULL", (user_id,)
    )
    return [(bytes(row[0]), None if row[1] is None else bytes(row[1])) for row in rows]


async def use_recovery_code(tx: Tx, user_id: UUID, code_hash: bytes) -> bool:
    count = await tx.execute(
        "UPDATE recovery_codes SET used_at = %s WHERE user_id = %s AND code_hash = %s AND used_at IS NULL",
        (tx.now, user_id, code_hash),
    )
    return count == 1


async def count_recovery_codes(tx: Tx, user_id: UUID) -> int:
    rows = await tx.fetch("SELECT count(*) FROM recovery_codes WHERE user_id = %s AND used_at IS NULL", (user_id,))
    return int(rows[0][0])


async def delete_recovery_codes(tx: Tx, user_id: UUID) -> None:
    await tx.execute("DELETE FROM recovery_codes WHERE user_id = %s", (user_id,))
