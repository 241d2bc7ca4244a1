"""Guessing passwords is slow: a few tries from one place, more in all, and strangers cannot lock anybody out.

Three counters, each of fifteen minutes: this account from this address, this address, this account. An attempt is
counted before the password is checked, so that guesses sent at once cannot pass together, and given back when it was
right. The last two counters skip an account that has signed in from this address before: an attacker who tries names
from all over the world, or from behind the same proxy, locks no user out at their usual address. A one-time link
always works.
"""

import ipaddress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from regulars.accounts.errors import TooManyAttempts
from regulars.accounts.throttle import queries
from regulars.kit.db import Tx

WINDOW: Final = timedelta(minutes=15)
PAIR_FAILURES_MAX: Final = 5
ADDRESS_FAILURES_MAX: Final = 50
ACCOUNT_FAILURES_MAX: Final = 100
KNOWN_FOR: Final = timedelta(days=90)
_IPV6_NETWORK_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try that is counted as a failure until it is given back; `left` more may fail after it."""

    email: str
    place: str
    subjects: tuple[str, ...]
    left: int


def place_of(address: str) -> str:
    """Where a visitor is, as far as it limits anybody: one IPv6 network belongs to one customer."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if parsed.version == 4:  # noqa: PLR2004  # the version of the protocol
        return str(parsed)
    return str(ipaddress.ip_network(f"{parsed}/{_IPV6_NETWORK_BITS}", strict=False))


async def count_attempt(tx: Tx, email: str, address: str) -> Attempt:
    """Count one more try and commit before it is made. A refused one is not counted: the refusal undoes `tx`."""
    place = place_of(address)
    limits = {_pair(email, place): PAIR_FAILURES_MAX}
    if not await queries.is_known_place(tx, email, place, since=tx.now - KNOWN_FOR):
        limits |= {_address(place): ADDRESS_FAILURES_MAX, _account(email): ACCOUNT_FAILURES_MAX}
    # Always in one order, so that two attempts at once do not wait for each other in a circle.
    subjects = tuple(sorted(limits))
    counted = [await queries.add_failure(tx, subject, until=tx.now + WINDOW) for subject in subjects]
    full = [until for subject, (count, until) in zip(subjects, counted, strict=True) if count > limits[subject]]
    if full:
        raise TooManyAttempts(max(full), now=tx.now)
    # What is over goes a batch at a time with what comes: there are never many more than are in use.
    await queries.delete_old_failures(tx)
    left = min(limits[subject] - count for subject, (count, _until) in zip(subjects, counted, strict=True))
    return Attempt(email, place, subjects, left)


async def give_back(tx: Tx, attempt: Attempt) -> None:
    """It was right so far, but is no sign-in yet: the failures before it stay."""
    for subject in attempt.subjects:
        await queries.take_failure_back(tx, subject)


async def succeed(tx: Tx, attempt: Attempt) -> None:
    """A whole sign-in, or the password with a code: the place is known from now on, and its failures are forgotten."""
    await give_back(tx, attempt)
    await queries.forget_failures(tx, _pair(attempt.email, attempt.place))
    await queries.remember_place(tx, attempt.email, attempt.place)


async def is_first_failure(tx: Tx, email: str) -> bool:
    """Whether this is the first failure of the account in fifteen minutes; each call counts as one."""
    count, _until = await queries.add_failure(tx, f"told {email}", until=tx.now + WINDOW)
    return count == 1


def _pair(email: str, place: str) -> str:
    return f"{place} {email}"


def _address(place: str) -> str:
    return f"address {place}"


def _account(email: str) -> str:
    return f"account {email}"
