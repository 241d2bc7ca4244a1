"""The history: requests of clients and their answers, appended before a request leaves and when its answer is there.

One JSON object a line. Each call has a number; it is followed by `ok` (2xx), `refused` (4xx: decided, and not done) or
`unknown` (no answer, or 5xx: done or not) with the same number.
"""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Call:
    """One thing to do. It may be sent many times, always with the same bytes and the same key."""

    path: str
    body: str
    key: str | None
    # What it is about: the external_id, or the number of a consent.
    subject: str
    # A customer whom only this call names, where the call must not create a customer.
    ghost: str | None = None
    method: str = "POST"
    # Whose it is, where several organizations write into one history.
    tag: str = ""
    # Of a call that is no JSON and has no API key: what a provider sends.
    signature: str | None = None


@dataclass(frozen=True)
class Answered:
    call: Call
    status: int
    body: str
    is_replay: bool
    media_type: str = ""
    retry_after: str | None = None
    sent_at: float = 0.0
    at: float = field(default_factory=time.monotonic)

    @property
    def is_success(self) -> bool:
        return self.status in {200, 201, 204}

    @property
    def is_decided(self) -> bool:
        """The operation itself has answered: anything else may be sent again, as the refusal of a key in flight says."""
        is_in_flight = self.status == 409 and self.json()["code"] == "IDEMPOTENCY_IN_PROGRESS"
        return self.is_success or (self.status in {400, 404, 409} and not is_in_flight)

    @property
    def kind(self) -> str:
        return "ok" if self.is_success else "refused" if self.status < 500 else "unknown"

    def json(self) -> Any:
        return json.loads(self.body)


class Journal:
    """Shared by all clients. The file is there to be read when a run has failed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._written: TextIO | None = None
        self._lock = threading.Lock()
        self._sent: list[Call] = []
        self._answers: list[Answered] = []
        self._undecided: dict[Call, None] = {}
        self.lost_calls = 0

    def sending(self, call: Call) -> int:
        with self._lock:
            self._sent.append(call)
            self._undecided[call] = None
            number = len(self._sent)
            self._append("call", number=number, **asdict(call))
            return number

    def answered(self, answer: Answered, number: int = 0) -> None:
        with self._lock:
            self._answers.append(answer)
            if answer.is_decided:
                self._undecided.pop(answer.call, None)
            outcome = {"status": answer.status, "replay": answer.is_replay, "body": answer.body}
            self._append(answer.kind, number=number, subject=answer.call.subject, **outcome)

    def lost(self, call: Call, reason: str, number: int = 0) -> None:
        with self._lock:
            self.lost_calls += 1
            self._append("unknown", number=number, subject=call.subject, key=call.key, reason=reason)

    def note(self, **about: Any) -> None:
        with self._lock:
            self._append("note", **about)

    def close(self) -> None:
        if self._written is not None:
            self._written.close()
            self._written = None

    @property
    def answers(self) -> list[Answered]:
        with self._lock:
            return list(self._answers)

    def last(self, count: int) -> list[Answered]:
        with self._lock:
            return self._answers[-count:]

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
        """The status of each sale that was answered with one, alone or in a batch, the answer, and if it was a replay."""
        for answer in self.successes(path):
            yield answer.status, answer.json(), answer.is_replay
        for answer in self.successes(batch_path):
            for result in answer.json()["results"]:
                if result["status"] in {200, 201}:
                    yield result["status"], result["body"], answer.is_replay

    def of(self, tag: str) -> "Journal":
        """What one organization did, as a history of its own that is only read."""
        part = Journal(self.file)
        with self._lock:
            part._sent = [call for call in self._sent if call.tag == tag]
            part._answers = [answer for answer in self._answers if answer.call.tag == tag]
            part._undecided = {call: None for call in self._undecided if call.tag == tag}
        return part

    def _append(self, event: str, **content: Any) -> None:
        if self._written is None:
            self._written = self.file.open("w", encoding="utf-8")
        self._written.write(json.dumps({"t": round(time.monotonic(), 4), "event": event, **content}) + "\n")
        self._written.flush()
