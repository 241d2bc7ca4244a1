import asyncio
import sys

from structlog.testing import capture_logs
from tests.support.waiting import until

from regulars.processes import supervise

SECONDS_MAX = 15


def test_a_child_that_cannot_be_started_is_tried_again(tmp_path, monkeypatch):
    python, began = tmp_path / "python", tmp_path / "began"
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(supervise, "RESTART_WAITS_S", (0.2,))
    child = supervise.Child(name="worker", arguments=[], descriptors=[])

    async def run() -> None:
        stop = asyncio.Event()
        supervising = asyncio.create_task(supervise.supervise(child, stop=stop, grace_s=5))
        await until(lambda: [line["event"] for line in lines].count("child.not_started") > 1)
        python.write_text(f"#!/bin/sh\n: > {began}\nexec sleep 60\n")
        python.chmod(0o755)
        await until(began.exists)
        stop.set()
        await asyncio.wait_for(supervising, SECONDS_MAX)

    with capture_logs() as lines:
        asyncio.run(run())
