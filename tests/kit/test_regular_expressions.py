"""No regular expression of ours becomes slow: one holds the event loop, and with it every organization."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from tests.support.hostile_patterns import Expression, expressions, hostile

# Of the processor, for one input: a pattern that reads each character a few times needs a hundredth of it.
# What is slow grows with the square at least, and is slow by then.
CHARACTERS = 10_000
SECONDS_MAX = 0.1
EXPRESSIONS_MIN = 60


# Each is slow with some input, and the search for such inputs has to find it.
SLOW = (
    r"(a+)+$",
    r"\s+$",
    r"\s*-?H?\s*['\"]?([A-Za-z0-9-]+)\s*[:=]\s*(.*?)['\"]?\s*\\?\s*",
    r"(?:x|[a-z])*y?(?:x|[a-z])*!",
)


class TooSlow(Exception):
    pass


def test_no_pattern_is_slow_with_the_longest_input_there_is():
    found = expressions()
    assert len(found) > EXPRESSIONS_MIN
    assert [f"{one.place} {one.pattern.pattern!r}" for one in found if is_slow(one)] == []


@pytest.mark.parametrize("pattern", SLOW)
def test_a_slow_pattern_is_found(pattern):
    assert is_slow(Expression("here", re.compile(pattern), {"search"}))


def is_slow(expression: Expression) -> bool:
    """Slow each time: a busy machine may make any pattern slow once."""
    return all(is_slow_now(expression) for _ in range(3))


def is_slow_now(expression: Expression) -> bool:
    try:
        for text in hostile(expression.pattern, characters=CHARACTERS):
            for method in expression.methods:
                arguments = ("", text) if method == "sub" else (text,)
                if isinstance(text, bytes) and method == "sub":
                    arguments = (b"", text)
                with processor_time(SECONDS_MAX):
                    found = getattr(expression.pattern, method)(*arguments)
                    if method == "finditer":
                        list(found)
    except TooSlow:
        return True
    return False


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raise once this thread has used so much; the timer also counts what other threads use."""
    started = time.thread_time()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if time.thread_time() - started >= seconds:
            raise TooSlow
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
