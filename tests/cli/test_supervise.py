import asyncio
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.support.waiting import until

from regulars.kit.process import Stop
from regulars.processes import supervise

SECONDS_MAX = 15


def test_a_child_that_cannot_be_started_is_tried_again(tmp_path, monkeypatch):
    python, began = tmp_path / "python", tmp_path / "began"
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(supervise, "RESTART_WAITS_S", (0.2,))
    child = supervise.Child(name="worker", arguments=[], descriptors=[])

    async def run() -> None:
        stop = Stop()
        supervising = asyncio.create_task(supervise.supervise(child, stop=stop, grace_s=5))
        await until(lambda: [line["event"] for line in lines].count("child.not_started") > 1)
        python.write_text(f"#!/bin/sh\n: > {began}\nexec sleep 60\n")
        python.chmod(0o755)
        await until(began.exists)
        stop.request()
        await asyncio.wait_for(supervising, SECONDS_MAX)

    with capture_logs() as lines:
        asyncio.run(run())


@pytest.fixture
def make_child(tmp_path, monkeypatch):
    """Makes a child that runs these shell commands whenever it is sent a signal to stop, and the file it begins with."""

    def make(on_signal: str) -> tuple[supervise.Child, Path]:
        python, began = tmp_path / "python", tmp_path / "began"
        monkeypatch.setattr(sys, "executable", str(python))
        python.write_text(f"#!/bin/bash\ntrap '{on_signal}' TERM\n: > {began}\nwhile :; do sleep 0.05; done\n")
        python.chmod(0o755)
        return supervise.Child(name="server 0", arguments=[], descriptors=[]), began

    return make


def test_a_child_gets_a_second_signal_when_the_stop_is_hurried(tmp_path, make_child):
    asked = tmp_path / "asked"
    child, began = make_child(f"if [ -e {asked} ]; then exit 0; fi; : > {asked}")

    async def run() -> None:
        stop = Stop()
        supervising = asyncio.create_task(supervise.supervise(child, stop=stop, grace_s=60))
        await until(began.exists)
        stop.request()
        await until(asked.exists)
        assert not supervising.done()
        stop.request()
        await asyncio.wait_for(supervising, SECONDS_MAX)

    asyncio.run(run())


def test_a_hurried_child_that_missed_a_signal_gets_another(tmp_path, make_child, monkeypatch):
    monkeypatch.setattr(supervise, "REPEAT_SIGNAL_S", 0.2)
    counted = tmp_path / "counted"
    child, began = make_child(f"echo >> {counted}; if [ $(wc -l < {counted}) -ge 3 ]; then exit 0; fi")

    async def run() -> None:
        stop = Stop()
        supervising = asyncio.create_task(supervise.supervise(child, stop=stop, grace_s=60))
        await until(began.exists)
        stop.hurry()
        await asyncio.wait_for(supervising, SECONDS_MAX)

    asyncio.run(run())
