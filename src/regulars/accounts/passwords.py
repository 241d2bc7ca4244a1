"""Passwords: argon2id, at least twelve characters, none of the most common; no rules about kinds of characters."""

import asyncio
import contextlib
import string
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Final

from argon2 import PasswordHasher, Type
from argon2.exceptions import Argon2Error, InvalidHashError

from regulars.web.errors import TooMany

CHARACTERS_MIN: Final = 12
CHARACTERS_MAX: Final = 256
DISTINCT_MIN: Final = 4
# A password without letters must be longer.
DIGITS_MIN: Final = 16
_DIGIT_SEQUENCE: Final = "01234567890"
_LISTS: Final = (
    Path(__file__).parent.parent / "vendor" / "zxcvbn" / "passwords.txt",
    Path(__file__).parent / "common_passwords.txt",
)
# Characters that are ignored at both ends of a word.
_DECORATION: Final = string.digits + string.punctuation + string.whitespace
_LEET: Final = str.maketrans("013457@$!", "oleastasi")
# RFC 9106, second recommendation: 64 MiB, three passes, four lanes.
_HASHER: Final = PasswordHasher(time_cost=3, memory_cost=65_536, parallelism=4, type=Type.ID)
QUEUE_WAIT_S: Final = 8.0
# Hashes computed at once in a process: each takes 64 MiB and a core for tens of milliseconds.
_PARALLEL_MAX: Final = 2


@cache
def _common() -> frozenset[str]:
    """Load the 10,000 most common passwords, and our own additions."""
    texts = [path.read_text(encoding="utf-8") for path in _LISTS]
    return frozenset(line for text in texts for line in text.splitlines() if line and not line.startswith("# "))


def find_weakness(password: str, *, email: str = "") -> str | None:
    """Return what is wrong with a new password, as a sentence, or None."""
    if len(password) < CHARACTERS_MIN:
        return f"Use at least {CHARACTERS_MIN} characters; this has {len(password)}. Several random words work well."
    if len(password) > CHARACTERS_MAX:
        return f"Use at most {CHARACTERS_MAX} characters."
    if _is_common(password.casefold(), email):
        return "This password is easy to guess; choose another."
    return None


def _is_common(folded: str, email: str) -> bool:
    """Whether it is one or two common words, or the user's own address, with digits and signs at its ends."""
    if (
        len(set(folded)) < DISTINCT_MIN
        or folded in _DIGIT_SEQUENCE * 3
        or folded[::-1] in _DIGIT_SEQUENCE * 3
        or folded in _common()
    ):
        return True
    own_address = {email, *email.split("@")} if email else set()
    core = "".join(folded.split()).strip(_DECORATION)
    if not core:
        return len(folded) < DIGITS_MIN
    if folded in own_address or core in own_address:
        return True
    # As typed and without leetspeak; as one word, or as two words with digits or signs between them.
    return any(
        word in _common()
        or any(
            word[:cut].strip(_DECORATION) in _common() and word[cut:].strip(_DECORATION) in _common()
            for cut in range(1, len(word))
        )
        for word in (core, core.translate(_LEET))
    )


class Passwords:
    """Computes hashes in threads, a few at a time; a process has one for signing in and one for confirming."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_PARALLEL_MAX)
        self._dummy_hash = ""

    async def hash(self, password: str) -> str:
        async with self._slot():
            return await asyncio.to_thread(_HASHER.hash, password)

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Whether it is the password. For a missing account it takes just as long, so that the time does not reveal
        which accounts exist."""
        async with self._slot():
            if password_hash is None:
                self._dummy_hash = self._dummy_hash or await asyncio.to_thread(_HASHER.hash, "no password")
                await asyncio.to_thread(_verify, self._dummy_hash, password)
                return False
            return await asyncio.to_thread(_verify, password_hash, password)

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        """Wait for a free slot, or refuse after `QUEUE_WAIT_S`: in a flood of sign-ins no request waits for ever."""
        try:
            async with asyncio.timeout(QUEUE_WAIT_S):
                await self._slots.acquire()
        except TimeoutError:
            raise TooMany("Too many people are signing in; try again in a few seconds.") from None
        try:
            yield
        finally:
            self._slots.release()


def _verify(password_hash: str, password: str) -> bool:
    try:
        return _HASHER.verify(password_hash, password)
    except (Argon2Error, InvalidHashError):
        return False
