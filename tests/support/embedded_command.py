"""Processes that use the embedded database, as separate commands do."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

HOLD = """
import sys
from pathlib import Path
from regulars.postgres import embedded
folder = Path(sys.argv[1])
print(embedded.ensure_running(folder, throwaway=True), flush=True)
sys.stdin.readline()
embedded.release(folder)
"""


class Command:
    """Uses the database until `finish` or `kill`."""

    def __init__(self, data_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self.process.stdout is not None
        self.stdout = self.process.stdout

    def url(self) -> str:
        return self.stdout.readline().strip()

    def finish(self) -> None:
        self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


def postmaster_pid(data_dir: Path) -> int:
    return int((data_dir / "cluster" / "postmaster.pid").read_text().split("\n", 1)[0])
