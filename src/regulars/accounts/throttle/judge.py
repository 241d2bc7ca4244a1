"""Guessing passwords is slow: a few tries from one place, more in all, and strangers cannot lock anybody out.

Three counters of failures, each of fifteen minutes: this account from this address, this address, this account. The
last one does not count where the account has signed in before, so that whoever tries names from all over the world
keeps nobody out of their own office; and a one-time link always works.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from regulars.accounts.throttle import queries
from regulars.kit.db import Tx

WINDOW: Final = timedelta(minutes=15)
PAIR_FAILURES_MAX: Final = 5
ADDRESS_FAILURES_MAX: Final = 50
ACCOUNT_FAILURES_MAX: Final = 100
KNOWN_FOR: Final = timedelta(days=90)
_IPV6_NETWORK_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a try may be made now: how many are left after it fails, or until when to wait."""

    tries_left: int
    wait_until: datetime | None

    @property
    def is_open(self) -> bool:
        return self.wait_until is None


def place_of(address: str) -> str:
    """Where a visitor is, as far as it limits anybody: one IPv6 network belongs to one customer."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 4:  # noqa: PLR2004  # the version of the protocol
        return str(parsed)
    return str(ipaddress.ip_network(f"{parsed}/{_IPV6_NETWORK_BITS}", strict=False))


async def judge(tx: Tx, email: str, address: str) -> Verdict:
    place = place_of(address)
    limits = {_pair(email, place): PAIR_FAILURES_MAX, _address(place): ADDRESS_FAILURES_MAX}
    if not await queries.is_known_place(tx, email, place, since=tx.now - KNOWN_FOR):
        limits[_account(email)] = ACCOUNT_FAILURES_MAX
    failures = await queries.find_failures(tx, list(limits))
    full = [until for subject, (count, until) in failures.items() if count >= limits[subject]]
    if full:
        return Verdict(0, max(full))
    left = min(limit - failures.get(subject, (0, tx.now))[0] for subject, limit in limits.items())
    return Verdict(left - 1, None)


async def note_failure(tx: Tx, email: str, address: str) -> None:
    place = place_of(address)
    subjects = [_pair(email, place), _address(place), _account(email)]
    # Always in one order, so that two failures at once do not wait for each other in a circle.
    for subject in sorted(subjects):
        await queries.add_failure(tx, subject, until=tx.now + WINDOW)
    # What is over goes a bite at a time with what comes: there are never many more than are in use.
    await queries.delete_old_failures(tx)


async def note_success(tx: Tx, user_email: str, address: str) -> None:
    place = place_of(address)
    await queries.forget_failures(tx, _pair(user_email, place))
    await queries.remember_place(tx, user_email, place)


def _pair(email: str, place: str) -> str:
    return f"{place} {email}"


def _address(place: str) -> str:
    return f"address {place}"


def _account(email: str) -> str:
    return f"account {email}"
