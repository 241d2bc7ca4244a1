"""Record responses in memory, and write them to the database every few seconds, outside of requests."""

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
from regulars.request_log import queries
from regulars.request_log.model import (
    ENTRIES_PER_KEY_MAX,
    REFUSALS_PER_DAY_MAX,
    REFUSED_STATUS_MIN,
    Counts,
    RequestLogEntry,
    masked_target,
    profile_named,
)

WRITE_EVERY_S: Final = 2.0
# How many responses of one key a process writes each time: the last successes, and more of the refusals, because users
# search for these.
SUCCESSES_PER_WRITE_MAX: Final = 20
# The limit for all keys together. With many busy keys, each gets an equal share, but at least a few.
SUCCESSES_TOGETHER_MAX: Final = 1_000
SUCCESSES_PER_WRITE_MIN: Final = 4
ORGANIZATIONS_TOGETHER_MAX: Final = 32
REFUSALS_PER_WRITE_MAX: Final = 100
KEYS_PER_WRITE_MAX: Final = 1_000
PROBLEM_BYTES_MAX: Final = 8 << 10
# Trimming a key reads its whole log, so it is not done for a few entries.
TRIM_AFTER_ENTRIES: Final = 200
DAY: Final = timedelta(days=1)

_log = log.get(__name__)


class Caller(Protocol):
    @property
    def organization_id(self) -> UUID: ...
    @property
    def api_key_id(self) -> UUID: ...


class Route(Protocol):
    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...


class ResponseRecord(Protocol):
    """A response as the API reports it; its times are of the monotonic clock."""

    @property
    def route(self) -> Route: ...
    @property
    def references(self) -> tuple[str, ...]: ...
    @property
    def request_id(self) -> str: ...
    @property
    def status(self) -> int: ...
    @property
    def started(self) -> float: ...
    @property
    def ended(self) -> float: ...
    @property
    def problem(self) -> bytes: ...


class _KeyResponses:
    """The responses to one key since the last write."""

    __slots__ = ("answers", "organization_id", "refusals", "refused", "succeeded")

    def __init__(self, organization_id: UUID) -> None:
        self.organization_id = organization_id
        self.answers = 0
        self.refusals = 0
        self.succeeded: deque[ResponseRecord] = deque(maxlen=SUCCESSES_PER_WRITE_MAX)
        self.refused: deque[ResponseRecord] = deque(maxlen=REFUSALS_PER_WRITE_MAX)


class RequestLog:
    """One per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recorded: dict[UUID, _KeyResponses] = {}
        self._untrimmed: Counter[UUID] = Counter()

    def record(self, caller: Caller, response: ResponseRecord) -> None:
        """Record a response. It runs within requests, so it only appends; `write` does the remaining work."""
        of_key = self._recorded.get(caller.api_key_id)
        if of_key is None:
            if len(self._recorded) >= KEYS_PER_WRITE_MAX:
                return
            of_key = self._recorded[caller.api_key_id] = _KeyResponses(caller.organization_id)
        of_key.answers += 1
        if response.status < REFUSED_STATUS_MIN:
            of_key.succeeded.append(response)
        else:
            of_key.refusals += 1
            of_key.refused.append(response)

    async def write_forever(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            await self.write()

    async def write(self) -> None:
        """Write the recorded responses; those that cannot be written now are lost, as documented."""
        recorded, self._recorded = self._recorded, {}
        by_organization: dict[UUID, dict[UUID, _KeyResponses]] = {}
        for api_key_id, of_key in recorded.items():
            by_organization.setdefault(of_key.organization_id, {})[api_key_id] = of_key
        share = max(SUCCESSES_PER_WRITE_MIN, SUCCESSES_TOGETHER_MAX // max(1, len(recorded)))
        # In the order of organizations, so that two processes do not deadlock.
        in_order = sorted(by_organization)
        for start in range(0, len(in_order), ORGANIZATIONS_TOGETHER_MAX):
            batch = in_order[start : start + ORGANIZATIONS_TOGETHER_MAX]
            await bisect_failures(batch, partial(self._write_together, by_organization, share), _lost)

    async def _write_together(
        self, recorded: Mapping[UUID, Mapping[UUID, _KeyResponses]], share: int, organization_ids: Sequence[UUID]
    ) -> Sequence[None]:
        async with self._database.transaction() as tx:
            for organization_id in organization_ids:
                await self._write(tx, organization_id, recorded[organization_id], share=share)
        return ()

    async def _write(self, tx: Tx, organization_id: UUID, keys: Mapping[UUID, _KeyResponses], *, share: int) -> None:
        hour = tx.now.replace(minute=0, second=0, microsecond=0)
        counts = {api_key_id: Counts(of_key.answers, of_key.refusals) for api_key_id, of_key in keys.items()}
        moment = _clock(tx.now)
        refused = [_entry(key, response, moment) for key, of_key in keys.items() for response in of_key.refused]
        if refused:
            before = await queries.sum_counts(tx, organization_id, since=hour - DAY)
            refused = refused[: max(0, REFUSALS_PER_DAY_MAX - before.refusals)]
        await queries.add_counts(tx, organization_id, counts, hour=hour)
        succeeded = [
            _entry(key, response, moment) for key, of_key in keys.items() for response in [*of_key.succeeded][-share:]
        ]
        entries = sorted([*refused, *succeeded], key=lambda entry: entry.answered_at)
        await queries.insert_entries(tx, organization_id, entries)
        self._untrimmed.update(entry.api_key_id for entry in entries)
        for api_key_id in keys:
            if self._untrimmed[api_key_id] >= TRIM_AFTER_ENTRIES:
                del self._untrimmed[api_key_id]
                await queries.delete_all_but_last(tx, organization_id, api_key_id, limit=ENTRIES_PER_KEY_MAX)


def _lost(organization_ids: Sequence[UUID], error: Exception) -> Sequence[None] | None:
    """If a single organization fails, its responses are lost; several organizations are bisected."""
    if len(organization_ids) > 1 and not isinstance(error, CONNECTION_ERRORS):
        return None
    for organization_id in organization_ids:
        _log.warning("request_log.lost", organization_id=str(organization_id), error=type(error).__name__)
    return ()


def _clock(now: datetime) -> Callable[[float], datetime]:
    """Convert times of the monotonic clock to the database's clock, which all entries use."""
    reading = monotonic()
    return lambda moment: truncate_to_milliseconds(now - timedelta(seconds=max(0.0, reading - moment)))


def _entry(api_key_id: UUID, response: ResponseRecord, moment: Callable[[float], datetime]) -> RequestLogEntry:
    is_refused = response.status >= REFUSED_STATUS_MIN
    code, problem = _read_problem(response.problem) if is_refused else (None, None)
    return RequestLogEntry(
        # Ids are in the order in which entries are written, which is nearly the order of the responses.
        id=new_uuid(),
        api_key_id=api_key_id,
        answered_at=moment(response.ended),
        method=response.route.method,
        target=masked_target(response.route.path, response.references),
        status=response.status,
        code=code,
        duration_us=round((response.ended - response.started) * 1e6),
        request_id=response.request_id,
        profile_id=profile_named(response.references),
        problem=problem,
    )


class _Problem(msgspec.Struct):
    code: str | None = None


def _read_problem(body: bytes) -> tuple[str | None, str | None]:
    """The code of a refusal, and its body if that is not too long."""
    code = None
    with contextlib.suppress(msgspec.MsgspecError):
        code = msgspec.json.decode(body, type=_Problem).code
        if len(body) <= PROBLEM_BYTES_MAX:
            return code, body.decode()
    return code, None
