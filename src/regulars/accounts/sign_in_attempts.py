"""Limit wrong passwords and codes, without letting an attacker lock a user out.

Each attempt has three counters of fifteen minutes: this account from this IP address, this IP address, this account. It
is counted before the password is checked, so that parallel guesses cannot pass together, and uncounted if it was right.
The last two counters skip an account that has signed in from this address before: an attacker who tries names from all
over the world, or from behind the same proxy, does not lock a user out at their usual address. A one-time link always
works.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from regulars.accounts.errors import TooManyAttempts
from regulars.kit.db import Tx

WINDOW: Final = timedelta(minutes=15)
PAIR_FAILURES_MAX: Final = 5
ADDRESS_FAILURES_MAX: Final = 50
ACCOUNT_FAILURES_MAX: Final = 100
NETWORK_REMEMBERED_FOR: Final = timedelta(days=90)
DELETED_ROWS_MAX: Final = 1_000
_IPV6_NETWORK_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to sign in. It counts as failed until it is uncounted; `left` more may fail. `subjects` names its
    counters."""

    email: str
    network: str
    subjects: tuple[str, ...]
    left: int


def network_of(address: str) -> str:
    """Return the network to limit: an IPv4 address, or an IPv6 network, of which a provider gives each customer one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 4:  # noqa: PLR2004  # the version of the protocol
        return str(parsed)
    return str(ipaddress.ip_network(f"{parsed}/{_IPV6_NETWORK_BITS}", strict=False))


async def count_attempt(tx: Tx, email: str, address: str) -> Attempt:
    """Count an attempt; the caller commits before the check. Above the limit, TooManyAttempts rolls `tx` back."""
    network = network_of(address)
    limits = {_pair_name(email, network): PAIR_FAILURES_MAX}
    if not await _has_signed_in_from(tx, email, network):
        limits |= {f"address {network}": ADDRESS_FAILURES_MAX, f"account {email}": ACCOUNT_FAILURES_MAX}
    # Locked in sorted order, so that two attempts at the same time do not deadlock.
    subjects = tuple(sorted(limits))
    failures = [await _add_failure(tx, subject) for subject in subjects]
    wait_until = [until for subject, (count, until) in zip(subjects, failures, strict=True) if count > limits[subject]]
    if wait_until:
        raise TooManyAttempts(max(wait_until), now=tx.now)
    # Each attempt deletes a batch of expired counters, so that the table stays small.
    await tx.execute(
        "DELETE FROM sign_in_failures WHERE subject IN"
        " (SELECT subject FROM sign_in_failures WHERE until <= %s LIMIT %s FOR UPDATE SKIP LOCKED)",
        (tx.now, DELETED_ROWS_MAX),
    )
    left = min(limits[subject] - count for subject, (count, _until) in zip(subjects, failures, strict=True))
    return Attempt(email, network, subjects, left)


async def uncount(tx: Tx, attempt: Attempt) -> None:
    """Stop counting an attempt that was right, but is not a complete sign-in yet: earlier failures stay counted."""
    for subject in attempt.subjects:
        await tx.execute("UPDATE sign_in_failures SET count = greatest(count - 1, 0) WHERE subject = %s", (subject,))


async def record_success(tx: Tx, attempt: Attempt) -> None:
    """Remember the network of a complete sign-in, or of a right password and code, and delete its failures."""
    await uncount(tx, attempt)
    await tx.execute("DELETE FROM sign_in_failures WHERE subject = %s", (_pair_name(attempt.email, attempt.network),))
    await tx.execute(
        "INSERT INTO sign_in_places (user_id, address, seen_at) SELECT id, %s, %s FROM users WHERE email = %s"
        " ON CONFLICT (user_id, address) DO UPDATE SET seen_at = excluded.seen_at",
        (attempt.network, tx.now, attempt.email),
    )


async def is_first_failure(tx: Tx, email: str) -> bool:
    """Count a failure of the account; return whether it is the first in fifteen minutes."""
    count, _until = await _add_failure(tx, f"told {email}")  # the prefix of a stored counter: it must not change
    return count == 1


async def _add_failure(tx: Tx, subject: str) -> tuple[int, datetime]:
    """Add one to a counter; return its count and the end of its window, which begins with the first failure."""
    rows = await tx.fetch(
        "INSERT INTO sign_in_failures AS known (subject, count, until) VALUES (%(subject)s, 1, %(until)s)"
        " ON CONFLICT (subject) DO UPDATE SET"
        " count = CASE WHEN known.until > %(now)s THEN known.count + 1 ELSE 1 END,"
        " until = CASE WHEN known.until > %(now)s THEN known.until ELSE excluded.until END"
        " RETURNING count, until",
        {"subject": subject, "until": tx.now + WINDOW, "now": tx.now},
    )
    return rows[0][0], rows[0][1]


async def _has_signed_in_from(tx: Tx, email: str, network: str) -> bool:
    rows = await tx.fetch(
        "SELECT 1 FROM sign_in_places p JOIN users u ON u.id = p.user_id"
        " WHERE u.email = %s AND p.address = %s AND p.seen_at > %s",
        (email, network, tx.now - NETWORK_REMEMBERED_FOR),
    )
    return bool(rows)


def _pair_name(email: str, network: str) -> str:
    return f"{network} {email}"
