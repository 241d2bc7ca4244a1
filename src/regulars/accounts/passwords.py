"""Refuse weak passwords, which are short or common, and hash passwords with argon2id."""

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
DISTINCT_CHARACTERS_MIN: Final = 4
# A password without letters must have this many characters.
WITHOUT_LETTERS_MIN: Final = 16
_DIGIT_SEQUENCE: Final = "01234567890"
_COMMON_PASSWORD_FILES: Final = (
    Path(__file__).parent.parent / "vendor" / "zxcvbn" / "passwords.txt",
    Path(__file__).parent / "common_passwords.txt",
)
# Characters that the search for common words ignores at both ends of a word.
_IGNORED: Final = string.digits + string.punctuation + string.whitespace
_LEET: Final = str.maketrans("013457@$!", "oleastasi")
# RFC 9106, second recommendation: 64 MiB, three passes, four lanes.
_HASHER: Final = PasswordHasher(time_cost=3, memory_cost=65_536, parallelism=4, type=Type.ID)
QUEUE_WAIT_S: Final = 8.0
# Hashes computed at once in a process: each takes 64 MiB and a core for tens of milliseconds.
_PARALLEL_MAX: Final = 2


@cache
def _common_passwords() -> frozenset[str]:
    """Load the 10,000 most common passwords, and those that this project adds."""
    texts = [path.read_text(encoding="utf-8") for path in _COMMON_PASSWORD_FILES]
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


def _is_common(lowered: str, email: str) -> bool:
    """Return whether a password is one or two common words, or the user's own address, with digits and signs around."""
    if (
        len(set(lowered)) < DISTINCT_CHARACTERS_MIN
        or lowered in _DIGIT_SEQUENCE * 3
        or lowered[::-1] in _DIGIT_SEQUENCE * 3
        or lowered in _common_passwords()
    ):
        return True
    own_address = {email, *email.split("@")} if email else set()
    trimmed = "".join(lowered.split()).strip(_IGNORED)
    if not trimmed:
        return len(lowered) < WITHOUT_LETTERS_MIN
    if lowered in own_address or trimmed in own_address:
        return True
    # Search the password as typed and without leetspeak, as one word and as two words with digits or signs between.
    return any(
        word in _common_passwords()
        or any(
            {word[:middle].strip(_IGNORED), word[middle:].strip(_IGNORED)} <= _common_passwords()
            for middle in range(1, len(word))
        )
        for word in (trimmed, trimmed.translate(_LEET))
    )


class Passwords:
    """Computes hashes in threads, a few at a time. A process has an instance for sign-ins, and one for signed-in users
    who confirm their password."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_PARALLEL_MAX)
        self._dummy_hash = ""

    async def hash(self, password: str) -> str:
        async with self._slot():
            return await asyncio.to_thread(_HASHER.hash, password)

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Return whether the password is right. A missing account takes just as long, so that the response time does
        not reveal which accounts exist."""
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
