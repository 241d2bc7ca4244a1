"""The answer that is kept for an idempotency key: found again, made, and stored with the write."""

from collections.abc import Mapping
from uuid import UUID

from psycopg.errors import LockNotAvailable

from regulars.http.batch import result
from regulars.http.pending import Outcome, Pending
from regulars.http.problem import problem_answer
from regulars.http.route import Answer, Write
from regulars.idempotency.errors import IdempotencyConflict
from regulars.idempotency.model import BATCH_BEGINNING, ERASED, Record, change_results, is_kept
from regulars.idempotency.remember import store
from regulars.kit.db import Tx
from regulars.kit.errors import ApiError

REPLAYED = (b"idempotent-replayed", b"true")
KEPT_NOTE = "This answer is kept for its Idempotency-Key; send a corrected request with a new one."


class KeyInUseError(Exception):
    """Another process holds the same idempotency key in a transaction that is still open."""


async def store_new(
    tx: Tx, organization_id: UUID, batch: list[Pending], outcomes: list[Outcome], known: Mapping[str, Record]
) -> None:
    records = [
        Record(p.write.key, p.write.fingerprint, answer.status, answer.body, tx.now, answer.headers)
        for p, outcome, answer in [(p, it, it.answer) for p, it in zip(batch, outcomes, strict=True)]
        if outcome.stored and p.write.key is not None and p.write.key not in known
    ]
    try:
        await store(tx, organization_id, records)
    except LockNotAvailable as error:
        raise KeyInUseError from error


def known_outcome(pending: Pending, records: Mapping[str, Record], *, erased: ApiError) -> Outcome | None:
    """What the stored record of the key says, if there is one, or `erased` in the place of what went with a person."""
    record = records.get(pending.write.key) if pending.write.key is not None else None
    if record is None:
        return None
    request_id = pending.write.request.request_id
    if record.fingerprint != pending.write.fingerprint:
        return Outcome(problem_answer(conflict(), request_id))
    if record.body is None:
        return Outcome(as_replay(problem_answer(erased, request_id)))
    body = record.body
    if body.startswith(BATCH_BEGINNING):
        body = change_results(body, lambda it: result(erased, request_id) if it == ERASED else it)
    return Outcome(as_replay(Answer(record.status, body, record.headers)), stored=True)


def decided(write: Write, result: Answer | ApiError) -> Outcome:
    if isinstance(result, Answer):
        return Outcome(write.noted(result), stored=write.key is not None and is_kept(result.status))
    stored = write.key is not None and is_kept(result.status)
    return Outcome(problem_answer(result, write.request.request_id, note=KEPT_NOTE if stored else ""), stored=stored)


def as_replay(answer: Answer) -> Answer:
    kept = tuple([header for header in answer.headers if header != REPLAYED])
    return Answer(answer.status, answer.body, (*kept, REPLAYED))


def conflict() -> IdempotencyConflict:
    return IdempotencyConflict("This Idempotency-Key was first used with another method, path or body.")
