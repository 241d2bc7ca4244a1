"""What every batch endpoint shares: items read one by one, and answered one by one in their order."""

from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from regulars.http.problem import problem_bytes
from regulars.http.route import PAYLOAD_MISMATCH, Answer
from regulars.kit.errors import ApiError

T = TypeVar("T")


class BatchResult(msgspec.Struct, frozen=True, omit_defaults=True):
    status: Annotated[int, Meta(description="The status this item would have had alone.")]
    body: Annotated[
        msgspec.Raw, Meta(description="What was stored, or the problem.", extra_json_schema={"type": "object"})
    ]
    payload_mismatch: Annotated[
        bool,
        Meta(
            description="Only there when true: another content was stored under this item's id before.",
            extra_json_schema={"const": True},
        ),
    ] = False


class BatchOut(msgspec.Struct, frozen=True):
    results: Annotated[list[BatchResult], Meta(description="One result for each item, in the same order.")]


def read_each(items: Iterable[msgspec.Raw], read: Callable[[bytes], T]) -> list[T | ApiError]:
    """Read the items; one that is refused is its refusal and holds up no other."""
    return [_read_one(item, read) for item in items]


def _read_one(item: msgspec.Raw, read: Callable[[bytes], T]) -> T | ApiError:
    try:
        return read(bytes(item))
    except ApiError as error:
        return error


def answer_batch(answers: Iterable[Answer | ApiError], request_id: str) -> Answer:
    """The answer of a batch request, whatever its items were answered: `BatchOut`, put together from encoded bodies."""
    results = b",".join([_result(answer, request_id) for answer in answers])
    return Answer(200, b'{"results":[%b]}' % results)


def all_alike(status: int, bodies: Iterable[bytes]) -> bytes:
    """The body of the same answer when all items have one status and none was refused."""
    between = b'},{"status":%d,"body":' % status
    return b'{"results":[{"status":%d,"body":%b}]}' % (status, between.join(bodies))


def _result(answer: Answer | ApiError, request_id: str) -> bytes:
    if isinstance(answer, ApiError):
        return b'{"status":%d,"body":%b}' % (answer.status, problem_bytes(answer, request_id))
    mismatch = b',"payload_mismatch":true' if PAYLOAD_MISMATCH in answer.headers else b""
    return b'{"status":%d,"body":%b%b}' % (answer.status, answer.body, mismatch)
