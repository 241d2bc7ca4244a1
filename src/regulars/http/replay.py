"""The answer that is kept for an idempotency key: found again, made, and stored with the write."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg.errors import LockNotAvailable

from regulars.http.batch import result
from regulars.http.in_flight import Outcome, Pending, refused
from regulars.http.problem import problem_answer
from regulars.http.route import Answer, Write
from regulars.idempotency.errors import IdempotencyConflict
from regulars.idempotency.model import BATCH_BEGINNING, ERASED, Record, change_results
from regulars.idempotency.remember import store
from regulars.kit import failpoint
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError

REPLAYED = (b"idempotent-replayed", b"true")


class KeyInUseError(Exception):
    """Another process holds the same idempotency key in a transaction that is still open."""


async def store_new(
    tx: Tx, organization_id: UUID, writes: Sequence[Write], outcomes: Sequence[Outcome], known: Mapping[str, Record]
) -> None:
    records = [
        Record(write.key, write.fingerprint, answer.status, answer.body, tx.now, answer.headers)
        for write, outcome, answer in [(write, it, it.answer) for write, it in zip(writes, outcomes, strict=True)]
        if outcome.stored and write.key is not None and write.key not in known
    ]
    try:
        await store(tx, organization_id, records)
    except LockNotAvailable as error:
        raise KeyInUseError from error
    if records:
        failpoint.hit("write.key_claimed", tx.connection.cut_off)


def known_outcome(write: Write, records: Mapping[str, Record], *, erased: ApiError) -> Outcome | None:
    """What the stored record of the key says, if there is one, or `erased` in the place of what went with a person."""
    record = records.get(write.key) if write.key is not None else None
    if record is None:
        return None
    if record.fingerprint != write.fingerprint:
        return refused(write, _conflict())
    if record.body is None:
        return Outcome(_as_replay(problem_answer(erased, write.request)))
    body = record.body
    if body.startswith(BATCH_BEGINNING):
        body = change_results(body, lambda it: result(erased, write.request) if it == ERASED else it)
    return Outcome(_as_replay(Answer(record.status, body, record.headers)), stored=True)


def replayed(write: Write, earlier: Pending) -> Answer:
    """The answer of an earlier write with the same key, or the refusal if it was another one."""
    if earlier.outcome is None or earlier.write.fingerprint != write.fingerprint:
        raise _conflict()
    return _as_replay(earlier.outcome.answer)


def _as_replay(answer: Answer) -> Answer:
    kept = tuple([header for header in answer.headers if header != REPLAYED])
    return Answer(answer.status, answer.body, (*kept, REPLAYED))


def _conflict() -> IdempotencyConflict:
    return IdempotencyConflict("This Idempotency-Key was first used with another method, path or body.")
