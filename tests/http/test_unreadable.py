"""Requests that cannot be read cost one log line per code and minute, which counts them."""

import asyncio

import pytest
from structlog.testing import capture_logs
from tests.support.waiting import until

from regulars.http import unreadable
from regulars.http.unreadable import UnreadableLog

pytestmark = pytest.mark.anyio


async def test_the_first_is_logged_at_once_and_the_others_counted(monkeypatch):
    monkeypatch.setattr(unreadable, "LOG_EVERY_S", 0.01)
    counting = UnreadableLog()
    with capture_logs() as lines:
        for code in ["A"] * 5 + ["B"]:
            counting.record(code)
        assert [(line["code"], line["count"]) for line in lines] == [("A", 1), ("B", 1)]
        await until(lambda: len(lines) > 2)
        assert (lines[2]["code"], lines[2]["count"]) == ("A", 4)
        await until(lambda: not counting._counts)
        await asyncio.sleep(0)
        assert len(lines) == 3
        counting.record("A")
        assert (lines[3]["code"], lines[3]["count"]) == ("A", 1)
