"""Record API responses in memory, and write them to the request log every few seconds, outside of requests."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol
from uuid import UUID

import msgspec

from regulars.kit import log
from regulars.kit.bisect import bisect_failures
from regulars.kit.clock import monotonic, truncate_to_milliseconds
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.ids import new_uuid
from regulars.kit.metrics import ResponseRecord
from regulars.request_log import queries
from regulars.request_log.model import (
    ENTRIES_PER_KEY_MAX,
    REFUSALS_PER_DAY_MAX,
    REFUSED_STATUS_MIN,
    Counts,
    RequestLogEntry,
    find_profile_id,
    mask_target,
)

WRITE_EVERY_S: Final = 2.0
# How many responses to one API key a process writes each time: the last successes, and more refusals, because these are
# what users look for.
SUCCESSES_PER_WRITE_MAX: Final = 20
REFUSALS_PER_WRITE_MAX: Final = 100
# The limit of successes for all keys together. With many busy keys, each may write equally many, but at least a few.
SUCCESSES_TOGETHER_MAX: Final = 1_000
SUCCESSES_PER_WRITE_MIN: Final = 4
ORGANIZATIONS_PER_TRANSACTION_MAX: Final = 32
KEYS_PER_WRITE_MAX: Final = 1_000
PROBLEM_BYTES_MAX: Final = 8 << 10
# The oldest entries of a key are deleted after this many new ones, because that reads all entries of the key.
TRIM_AFTER_ENTRIES: Final = 200
DAY: Final = timedelta(days=1)

_log = log.get(__name__)


class Caller(Protocol):
    @property
    def organization_id(self) -> UUID: ...
    @property
    def api_key_id(self) -> UUID: ...


class _KeyResponses:
    """The responses to one API key since the last write."""

    __slots__ = ("organization_id", "refusals", "refused", "succeeded", "total")

    def __init__(self, organization_id: UUID) -> None:
        self.organization_id = organization_id
        self.total = 0
        self.refusals = 0
        self.succeeded: deque[ResponseRecord] = deque(maxlen=SUCCESSES_PER_WRITE_MAX)
        self.refused: deque[ResponseRecord] = deque(maxlen=REFUSALS_PER_WRITE_MAX)


class RequestLog:
    """Records and writes responses; there is one object per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recorded: dict[UUID, _KeyResponses] = {}
        # The entries of each API key that were written since its oldest entries were deleted.
        self._untrimmed: Counter[UUID] = Counter()

    def record(self, caller: Caller, response: ResponseRecord) -> None:
        """Record a response in memory. This runs within requests, so `write` does the remaining work."""
        responses = self._recorded.get(caller.api_key_id)
        if responses is None:
            if len(self._recorded) >= KEYS_PER_WRITE_MAX:
                return
            responses = self._recorded[caller.api_key_id] = _KeyResponses(caller.organization_id)
        responses.total += 1
        if response.status < REFUSED_STATUS_MIN:
            responses.succeeded.append(response)
        else:
            responses.refusals += 1
            responses.refused.append(response)

    async def write_forever(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            await self.write()

    async def write(self) -> None:
        """Write the recorded responses; those that cannot be written now are lost."""
        recorded, self._recorded = self._recorded, {}
        by_organization: dict[UUID, dict[UUID, _KeyResponses]] = {}
        for api_key_id, responses in recorded.items():
            by_organization.setdefault(responses.organization_id, {})[api_key_id] = responses
        # The number of successes of each API key that are written.
        limit = max(SUCCESSES_PER_WRITE_MIN, SUCCESSES_TOGETHER_MAX // max(1, len(recorded)))
        # Sorted, so that two processes do not deadlock.
        organization_ids = sorted(by_organization)
        for start in range(0, len(organization_ids), ORGANIZATIONS_PER_TRANSACTION_MAX):
            batch = organization_ids[start : start + ORGANIZATIONS_PER_TRANSACTION_MAX]
            await bisect_failures(batch, partial(self._write_together, by_organization, limit), _log_lost)

    async def _write_together(
        self, recorded: Mapping[UUID, Mapping[UUID, _KeyResponses]], limit: int, organization_ids: Sequence[UUID]
    ) -> Sequence[None]:
        async with self._database.transaction() as tx:
            for organization_id in organization_ids:
                await self._write(tx, organization_id, recorded[organization_id], limit=limit)
        return ()

    async def _write(self, tx: Tx, organization_id: UUID, keys: Mapping[UUID, _KeyResponses], *, limit: int) -> None:
        hour = tx.now.replace(minute=0, second=0, microsecond=0)
        counts = {api_key_id: Counts(responses.total, responses.refusals) for api_key_id, responses in keys.items()}
        to_entry = partial(_to_entry, _make_converter(tx.now))
        refused = [to_entry(key, response) for key, responses in keys.items() for response in responses.refused]
        if refused:
            refusals = await queries.count_refusals(tx, organization_id, since=hour - DAY)
            refused = refused[: max(0, REFUSALS_PER_DAY_MAX - refusals)]
        await queries.add_counts(tx, organization_id, counts, hour=hour)
        succeeded = [
            to_entry(key, response) for key, responses in keys.items() for response in [*responses.succeeded][-limit:]
        ]
        entries = sorted([*refused, *succeeded], key=lambda entry: entry.answered_at)
        await queries.insert_entries(tx, organization_id, entries)
        self._untrimmed.update(entry.api_key_id for entry in entries)
        for api_key_id in keys:
            if self._untrimmed[api_key_id] >= TRIM_AFTER_ENTRIES:
                del self._untrimmed[api_key_id]
                await queries.delete_all_but_last(tx, organization_id, api_key_id, limit=ENTRIES_PER_KEY_MAX)


def _log_lost(organization_ids: Sequence[UUID], error: Exception) -> Sequence[None] | None:
    """Log that responses are lost; return None to bisect several organizations that failed together."""
    if len(organization_ids) > 1 and not isinstance(error, CONNECTION_ERRORS):
        return None
    for organization_id in organization_ids:
        _log.warning("request_log.lost", organization_id=str(organization_id), error=type(error).__name__)
    return ()


def _make_converter(now: datetime) -> Callable[[float], datetime]:
    """Return a function that converts times of the monotonic clock to the database's clock, which all entries use."""
    monotonic_now = monotonic()
    return lambda time: truncate_to_milliseconds(now - timedelta(seconds=max(0.0, monotonic_now - time)))


def _to_entry(to_time: Callable[[float], datetime], api_key_id: UUID, response: ResponseRecord) -> RequestLogEntry:
    is_refused = response.status >= REFUSED_STATUS_MIN
    code, problem = _read_problem(response.problem) if is_refused else (None, None)
    return RequestLogEntry(
        # Ids are in the order in which entries are written, which is nearly the order of the responses.
        id=new_uuid(),
        api_key_id=api_key_id,
        answered_at=to_time(response.ended),
        method=response.method,
        target=mask_target(response.path, response.references),
        status=response.status,
        code=code,
        duration_us=round((response.ended - response.started) * 1e6),
        request_id=response.request_id,
        profile_id=find_profile_id(response.references),
        problem=problem,
    )


class _Problem(msgspec.Struct):
    code: str | None = None


def _read_problem(body: bytes) -> tuple[str | None, str | None]:
    """Return the code of a refusal, and its body if that is not too long."""
    code = None
    with contextlib.suppress(msgspec.MsgspecError):
        code = msgspec.json.decode(body, type=_Problem).code
        if len(body) <= PROBLEM_BYTES_MAX:
            return code, body.decode()
    return code, None
