"""Processes that use the embedded database, as separate commands do."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.support.fork_server import fork_server

from regulars.postgres import embedded

SECONDS_MAX = 60


def main(arguments: Sequence[str], descriptors: Sequence[int]) -> None:
    """Entry point for the fork server: writes the URL to one pipe, and uses the database until the other is closed."""
    folder = Path(arguments[0])
    url_pipe, end_pipe = descriptors
    os.write(url_pipe, embedded.ensure_running(folder, throwaway=True).encode())
    os.close(url_pipe)
    os.read(end_pipe, 1)
    embedded.release(folder)


class Command:
    """Uses the database until `finish` or `kill`."""

    def __init__(self, data_dir: Path) -> None:
        self._log = data_dir.parent / "commands.log"
        url_reader, url_pipe = os.pipe()
        end_pipe, end_writer = os.pipe()
        self._url, self._end = os.fdopen(url_reader), os.fdopen(end_writer, "w")
        self._child = fork_server().start(
            __name__, str(data_dir), environment=dict(os.environ), log=self._log, descriptors=[url_pipe, end_pipe]
        )
        os.close(url_pipe)
        os.close(end_pipe)

    def url(self) -> str:
        return self._url.read()

    def finish(self) -> None:
        self._end.close()
        assert self._child.wait(SECONDS_MAX) == 0, self._log.read_text()

    def kill(self) -> None:
        self._child.send_signal(signal.SIGKILL)
        self._child.wait(SECONDS_MAX)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._url.close()
        self._end.close()


def postmaster_pid(data_dir: Path) -> int:
    return int((data_dir / "cluster" / "postmaster.pid").read_text().split("\n", 1)[0])
