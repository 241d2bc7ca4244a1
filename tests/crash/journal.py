"""What clients asked and what they were told, appended before the request leaves and when its answer is there."""

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Call:
    """One thing to do. It may be sent many times, always with the same bytes and the same key."""

    path: str
    body: str
    key: str | None
    # What it is about: the external_id, or the number of a consent.
    subject: str
    # A customer whom only this call names, where the call must not create anybody.
    ghost: str | None = None


@dataclass(frozen=True)
class Answered:
    call: Call
    status: int
    body: str
    is_replay: bool

    @property
    def is_success(self) -> bool:
        return self.status in {200, 201}

    @property
    def is_decided(self) -> bool:
        """The operation itself has answered: anything else may be sent again, as the refusal of a key in flight says."""
        is_in_flight = self.status == 409 and self.json()["code"] == "IDEMPOTENCY_IN_PROGRESS"
        return self.is_success or (self.status in {400, 404, 409} and not is_in_flight)

    def json(self) -> Any:
        return json.loads(self.body)


class Journal:
    """Shared by all clients. The file is there to be read when a run has failed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._sent: list[Call] = []
        self._answers: list[Answered] = []
        self._undecided: dict[Call, None] = {}

    def sending(self, call: Call) -> None:
        with self._lock:
            self._sent.append(call)
            self._undecided[call] = None
            self._append("sending", asdict(call))

    def answered(self, answer: Answered) -> None:
        with self._lock:
            self._answers.append(answer)
            if answer.is_decided:
                self._undecided.pop(answer.call, None)
            self._append("answered", asdict(answer))

    def lost(self, call: Call, reason: str) -> None:
        with self._lock:
            self._append("lost", {"subject": call.subject, "key": call.key, "reason": reason})

    def note(self, **about: Any) -> None:
        with self._lock:
            self._append("note", about)

    @property
    def answers(self) -> list[Answered]:
        with self._lock:
            return list(self._answers)

    @property
    def calls(self) -> list[Call]:
        with self._lock:
            return list(dict.fromkeys(self._sent))

    @property
    def undecided(self) -> list[Call]:
        """Calls that were sent and never answered with a decision."""
        with self._lock:
            return list(self._undecided)

    def by_key(self) -> dict[str, list[Answered]]:
        grouped: dict[str, list[Answered]] = {}
        for answer in self.answers:
            if answer.call.key is not None and answer.is_decided:
                grouped.setdefault(answer.call.key, []).append(answer)
        return grouped

    def successes(self, path: str) -> Iterator[Answered]:
        return (answer for answer in self.answers if answer.call.path == path and answer.is_success)

    def recorded(self, path: str, batch_path: str) -> Iterator[tuple[int, Any, bool]]:
        """The status of each sale that was answered with one, alone or in a batch, the sale, and if it was a replay."""
        for answer in self.successes(path):
            yield answer.status, answer.json()["sales_event"], answer.is_replay
        for answer in self.successes(batch_path):
            for result in answer.json()["results"]:
                if result["status"] in {200, 201}:
                    yield result["status"], result["body"]["sales_event"], answer.is_replay

    def _append(self, what: str, content: dict[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({what: content}) + "\n")
