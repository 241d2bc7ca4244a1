"""Records the history of requests and responses, before each request and after each response.

Each line is a JSON object. A call has a number; `ok` (2xx), `refused` (4xx: decided, not done) or `unknown` (5xx or no
response: done or not) follows with the same number.
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
    """One operation. It may be sent many times, always with the same bytes and key."""

    path: str
    body: str
    key: str | None
    # The external_id, or the phone number of a consent.
    subject: str
    # A customer whom only this call names, where the call must not create a customer.
    ghost: str | None = None
    method: str = "POST"
    # The tag of the organization, if several write into one history.
    tag: str = ""
    # The form of a provider's call, which has no JSON and no API key.
    signature: str | None = None


@dataclass(frozen=True)
class RecordedResponse:
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
        """The response decides the operation. Others, such as the refusal of a key in flight, allow a retry."""
        is_in_flight = self.status == 409 and self.json()["code"] == "IDEMPOTENCY_IN_PROGRESS"
        return self.is_success or (self.status in {400, 404, 409} and not is_in_flight)

    @property
    def kind(self) -> str:
        return "ok" if self.is_success else "refused" if self.status < 500 else "unknown"

    def json(self) -> Any:
        return json.loads(self.body)


class Journal:
    """The history of all clients; its file helps to analyse a failed run."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._written: TextIO | None = None
        self._lock = threading.Lock()
        self._sent: list[Call] = []
        self._answers: list[RecordedResponse] = []
        self._undecided: dict[Call, None] = {}
        self.lost_calls = 0

    def sending(self, call: Call) -> int:
        with self._lock:
            self._sent.append(call)
            self._undecided[call] = None
            number = len(self._sent)
            self._append("call", number=number, **asdict(call))
            return number

    def answered(self, answer: RecordedResponse, number: int = 0) -> None:
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
    def answers(self) -> list[RecordedResponse]:
        with self._lock:
            return list(self._answers)

    def last(self, count: int) -> list[RecordedResponse]:
        with self._lock:
            return self._answers[-count:]

    @property
    def calls(self) -> list[Call]:
        with self._lock:
            return list(dict.fromkeys(self._sent))

    @property
    def undecided(self) -> list[Call]:
        """Calls without a deciding response."""
        with self._lock:
            return list(self._undecided)

    def by_key(self) -> dict[str, list[RecordedResponse]]:
        grouped: dict[str, list[RecordedResponse]] = {}
        for answer in self.answers:
            if answer.call.key is not None and answer.is_decided:
                grouped.setdefault(answer.call.key, []).append(answer)
        return grouped

    def successes(self, path: str) -> Iterator[RecordedResponse]:
        return (answer for answer in self.answers if answer.call.path == path and answer.is_success)

    def recorded(self, path: str, batch_path: str) -> Iterator[tuple[int, Any, bool]]:
        """Each sale with a status, single or in a batch: the status, the response, and whether it was a replay."""
        for answer in self.successes(path):
            yield answer.status, answer.json(), answer.is_replay
        for answer in self.successes(batch_path):
            for result in answer.json()["results"]:
                if result["status"] in {200, 201}:
                    yield result["status"], result["body"], answer.is_replay

    def of(self, tag: str) -> "Journal":
        """The read-only history of one organization."""
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
