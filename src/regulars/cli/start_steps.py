"""Say what a start does and how far it is, so that it is never silent for long: a line that moves on a terminal, lines
elsewhere, and events in a log."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from regulars.cli.output import err
from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.settings import SettingsError

SAY_EVERY_S: Final = 3.0
MOVE_EVERY_S: Final = 0.5

_log = log.get(__name__)


class StartStep:
    """A step in progress; `count` says how much of it is done."""

    def __init__(self, sentence: str, event: str, *, moves: bool, is_brief: bool) -> None:
        self._sentence = sentence
        self._event = event
        self._is_brief = is_brief
        self._writes_json = log.writes_json()
        self._moves = moves and err.is_terminal and not self._writes_json
        self._started = monotonic()
        self._done = self._total = 0

    def count(self, done: int, total: int) -> None:
        self._done, self._total = done, total

    def begin(self, *, is_logged: bool) -> None:
        if self._is_brief:
            return
        if self._moves:
            self._write(self._sentence)
        elif not self._writes_json:
            err.print(f"{self._sentence}.", markup=False)
        elif is_logged:
            _log.info(self._event)

    def say_until(self, ended: threading.Event) -> None:
        while not ended.wait(MOVE_EVERY_S if self._moves and not self._is_brief else SAY_EVERY_S):
            seconds = round(monotonic() - self._started)
            if self._moves:
                self._write(f"{self._line()}, {seconds} s")
            elif self._writes_json:
                counted = {"done": self._done, "total": self._total} if self._total else {}
                _log.info(self._event, seconds=seconds, **counted)
            else:
                err.print(f"{self._line()}, {seconds} s.", markup=False)

    def end(self) -> None:
        if self._moves:
            self._write("" if self._is_brief else f"{self._line()}.\n")

    def _line(self) -> str:
        return f"{self._sentence}: {self._done} of {self._total}" if self._total else self._sentence

    def _write(self, line: str) -> None:
        """Replace the line at which the cursor stands."""
        err.file.write(f"\r\x1b[K{line}")
        err.file.flush()


@contextmanager
def loading() -> Iterator[None]:
    """Say that the program is loaded, if that takes long. The lines are already those of a service."""
    with suppress(SettingsError):
        log.load_for_service()
    with step("Loading the program", "server.loading", is_brief=True):
        yield


@contextmanager
def step(
    sentence: str, event: str, *, is_logged: bool = False, moves: bool = True, is_brief: bool = False
) -> Iterator[StartStep]:
    """Say what the block does. A log has the event at the beginning if `is_logged`, and whenever the step has taken
    some seconds more. A step that does not move leaves the terminal to other lines, and of a brief one nothing is said
    unless it takes long."""
    current, ended = StartStep(sentence, event, moves=moves, is_brief=is_brief), threading.Event()
    speaker = threading.Thread(target=current.say_until, args=(ended,), name="start steps", daemon=True)
    current.begin(is_logged=is_logged)
    speaker.start()
    try:
        yield current
    finally:
        ended.set()
        speaker.join()
        current.end()
