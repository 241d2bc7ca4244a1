"""The statements on `sign_in_failures` and `sign_in_places`."""

from datetime import datetime

from regulars.kit.db import Tx

SWEPT_AT_ONCE = 1000


async def add_failure(tx: Tx, subject: str, *, until: datetime) -> tuple[int, datetime]:
    """How many there are with this one, and until when. The window starts with the first failure and is not stretched
    by later ones: it always ends."""
    rows = await tx.fetch(
        "INSERT INTO sign_in_failures AS known (subject, count, until) VALUES (%(subject)s, 1, %(until)s)"
        " ON CONFLICT (subject) DO UPDATE SET"
        " count = CASE WHEN known.until > %(now)s THEN known.count + 1 ELSE 1 END,"
        " until = CASE WHEN known.until > %(now)s THEN known.until ELSE excluded.until END"
        " RETURNING count, until",
        {"subject": subject, "until": until, "now": tx.now},
    )
    return rows[0][0], rows[0][1]


async def take_failure_back(tx: Tx, subject: str) -> None:
    await tx.execute("UPDATE sign_in_failures SET count = greatest(count - 1, 0) WHERE subject = %s", (subject,))


async def forget_failures(tx: Tx, subject: str) -> None:
    await tx.execute("DELETE FROM sign_in_failures WHERE subject = %s", (subject,))


async def delete_old_failures(tx: Tx) -> int:
    return await tx.execute(
        "DELETE FROM sign_in_failures WHERE subject IN"
        " (SELECT subject FROM sign_in_failures WHERE until <= %s LIMIT %s FOR UPDATE SKIP LOCKED)",
        (tx.now, SWEPT_AT_ONCE),
    )


async def is_known_place(tx: Tx, email: str, place: str, *, since: datetime) -> bool:
    rows = await tx.fetch(
        "SELECT 1 FROM sign_in_places p JOIN users u ON u.id = p.user_id"
        " WHERE u.email = %s AND p.address = %s AND p.seen_at > %s",
        (email, place, since),
    )
    return bool(rows)


async def remember_place(tx: Tx, email: str, place: str) -> None:
    await tx.execute(
        "INSERT INTO sign_in_places (user_id, address, seen_at) SELECT id, %s, %s FROM users WHERE email = %s"
        " ON CONFLICT (user_id, address) DO UPDATE SET seen_at = excluded.seen_at",
        (place, tx.now, email),
    )
