"""A body may be slow; it may not stall."""

import asyncio
from collections.abc import Iterable

import pytest

from regulars.http.body import BODY_TIMEOUTS, Bodies, BodyTimeouts
from regulars.kit.errors import PayloadTooLarge, RequestTimeout, Unavailable

pytestmark = pytest.mark.anyio

MIB = 1 << 20


def stops_after(pieces: Iterable[tuple[float, int]]) -> tuple[float, int]:
    """When, and with how many bytes, a body is given up: pieces are pauses in seconds and bytes."""
    now, received, until = 0.0, 0, BODY_TIMEOUTS.silence_s
    for pause, size in pieces:
        if now + pause > until:
            return until, received
        now += pause
        received += size
        until = BODY_TIMEOUTS.deadline(started=0.0, last_received_at=now, received=received)
    return now, received


def test_the_limits_are_those_that_are_documented():
    assert (
        BodyTimeouts()
        == BodyTimeouts(silence_s=15.0, grace_s=15.0, bytes_per_s_min=10_000, total_s=120.0)
        == BODY_TIMEOUTS
    )


def test_a_steady_upload_of_8_mib_at_300_kb_a_second_succeeds():
    piece = (64_000 / 300_000, 64_000)
    assert stops_after([piece] * 132)[1] > 8 * MIB
    assert stops_after([(1.0, 300_000)] * 28)[1] > 8 * MIB


def test_fifteen_seconds_of_silence_are_the_end():
    assert stops_after([]) == (0.0, 0)
    assert stops_after([(16.0, 1)]) == (15.0, 0)
    assert stops_after([(14.0, 1_000_000), (14.0, 1), (16.0, 1)]) == (43.0, 1_000_001)


def test_below_ten_kilobytes_a_second_is_the_end_after_the_first_fifteen():
    # One byte a second never pauses, and is given up as soon as the average counts.
    assert stops_after([(1.0, 1)] * 100)[0] == 15.0
    assert stops_after([(1.0, 9_000)] * 100)[0] == 15.0
    assert stops_after([(1.0, 11_000)] * 100) == (100.0, 1_100_000)
    # What came quickly at first counts, and is used up.
    assert stops_after([(1.0, 300_000), *[(1.0, 1)] * 100])[0] == pytest.approx(30.0, abs=0.01)


def test_two_minutes_are_the_end_in_any_case():
    assert stops_after([(1.0, 60_000)] * 200)[0] == 120.0


def receiving(*chunks: bytes, ends: bool = True, hangs_up: bool = False):
    waiting = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if ends:
        waiting[-1]["more_body"] = False

    async def receive():
        if waiting:
            return waiting.pop(0)
        if not hangs_up:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return receive


async def test_what_is_refused_or_let_go_no_longer_counts():
    bodies = Bodies(BodyTimeouts(silence_s=0.01, grace_s=0.01))
    for receive, refusal in (
        (receiving(b"x" * 100, ends=False), RequestTimeout),
        (receiving(b"x" * 100, ends=False, hangs_up=True), RequestTimeout),
        (receiving(b"x" * 100, b"x" * 100), PayloadTooLarge),
    ):
        with pytest.raises(refusal):
            await bodies.read(receive, bytes_max=150)
        assert bodies._bytes == 0
    body = await bodies.read(receiving(b"ab", b"cd"), bytes_max=4)
    assert (body, bodies._bytes) == (b"abcd", 4)
    bodies.release(body)
    assert bodies._bytes == 0


async def test_a_caller_that_is_cut_off_while_it_is_read_no_longer_counts():
    bodies = Bodies(BODY_TIMEOUTS)
    reading = asyncio.create_task(bodies.read(receiving(b"x" * 100, ends=False), bytes_max=150))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert bodies._bytes == 0


async def test_there_is_room_for_so_many_bodies_and_no_more(monkeypatch):
    monkeypatch.setattr("regulars.http.body.BODIES_BYTES_MAX", 5)
    bodies = Bodies(BODY_TIMEOUTS)
    first = await bodies.read(receiving(b"abc"), bytes_max=10)
    with pytest.raises(Unavailable):
        await bodies.read(receiving(b"abc"), bytes_max=10)
    bodies.release(first)
    assert await bodies.read(receiving(b"abc"), bytes_max=10) == b"abc"
