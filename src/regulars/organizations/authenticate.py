"""Authenticate the `x-api-key` header, with a cache that accepts a revoked key for at most a second."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.kit.vault import VaultError
from regulars.organizations import queries
from regulars.organizations.model import ApiCaller, Permission, hash_key, is_well_formed

CACHE_S = 1.0
# A busy key is queried again before its cache entry expires, so that its callers do not all wait for a query at the
# same time. The same statement refreshes all busy keys whose entry expires soon.
REFRESH_AFTER_S = 0.5
REFRESH_ALONG_AFTER_S = 0.25
CACHED_KEYS_MAX = 10_000
RECORD_USE_EVERY_S = 60

_log = log.get(__name__)


@dataclass(slots=True)
class _CachedKey:
    """A cached key: the caller it identifies, when the database was queried, and whether it was used since."""

    queried_at: float
    caller: ApiCaller
    is_used: bool = False


class Authenticator:
    """Finds the caller of an API key, with one cache per process. It also records, once a minute and outside of
    requests, which keys were used."""

    def __init__(self, database: Database, *, default_country: str | None = None) -> None:
        self._database = database
        self._default_country = default_country
        self._cache: dict[bytes, _CachedKey] = {}
        self._queries: dict[bytes, asyncio.Task[ApiCaller | None]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._used: set[UUID] = set()

    def cached(self, key: bytes) -> ApiCaller | None:
        """Return the caller, if the database confirmed this key less than a second ago."""
        entry = self._cache.get(key)
        if entry is None:
            return None
        entry.is_used = True
        age_s = monotonic() - entry.queried_at
        if age_s > REFRESH_AFTER_S and self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
        return entry.caller if age_s <= CACHE_S else None

    async def authenticate(self, key: bytes) -> ApiCaller | None:
        caller = self.cached(key)
        if caller is not None:
            return caller
        if not is_well_formed(key.decode("latin-1")):
            return None
        return await asyncio.shield(self._query(key))

    def _query(self, key: bytes) -> "asyncio.Task[ApiCaller | None]":
        """Return the running query for this key, or start one: all requests that wait for it share it."""
        task = self._queries.get(key)
        if task is None:
            task = self._queries[key] = asyncio.create_task(self._look_up(key))
            task.add_done_callback(lambda done: self._end_query(key, done))
        return task

    def _end_query(self, key: bytes, task: "asyncio.Task[ApiCaller | None]") -> None:
        del self._queries[key]
        # All waiting requests may have been cancelled: read the exception, or asyncio reports it as never retrieved.
        if not task.cancelled() and isinstance(error := task.exception(), CONNECTION_ERRORS):
            _log.warning("keys.database_unavailable", error=type(error).__name__)

    async def _look_up(self, key: bytes) -> ApiCaller | None:
        failed = await self._confirm([key])
        if key in failed:
            raise failed[key]
        entry = self._cache.get(key)
        return None if entry is None else entry.caller

    async def _refresh(self) -> None:
        """Query all busy keys whose cache entry expires soon."""
        queried_before = monotonic() - REFRESH_ALONG_AFTER_S
        try:
            await self._confirm(
                [key for key, entry in self._cache.items() if entry.is_used and entry.queried_at < queried_before]
            )
        except CONNECTION_ERRORS as error:
            _log.warning("keys.database_unavailable", error=type(error).__name__)
        finally:
            self._refreshing = None

    async def _confirm(self, keys: Sequence[bytes]) -> dict[bytes, VaultError]:
        """Cache the keys that are not revoked and remove all other keys; return keys whose organization's secret cannot
        be decrypted."""
        # The age of a cache entry counts from before the query, so a slow query does not make it live longer.
        queried_at = monotonic()
        hashes = {key: hash_key(key.decode("latin-1")) for key in keys}
        async with self._database.reading_by_key(is_urgent=True) as tx:
            live_keys = await queries.find_live_keys(tx, list(hashes.values()))
        failed: dict[bytes, VaultError] = {}
        for key, key_hash in hashes.items():
            live_key = live_keys.get(key_hash)
            if live_key is None or isinstance(live_key, VaultError):
                self._cache.pop(key, None)
                if live_key is not None:
                    failed[key] = live_key
                continue
            if key not in self._cache and len(self._cache) >= CACHED_KEYS_MAX:
                self._cache.clear()
            caller = ApiCaller(
                live_key.organization_id,
                live_key.id,
                live_key.secret,
                live_key.country or self._default_country,
                is_ingest_only=live_key.permission is Permission.INGEST,
            )
            self._cache[key] = _CachedKey(queried_at, caller)
            self._used.add(live_key.id)
        return failed

    async def record_use_forever(self) -> None:
        while True:
            await asyncio.sleep(RECORD_USE_EVERY_S)
            try:
                await self.record_use()
            except Exception as error:  # noqa: BLE001  # the task is never restarted, so it must survive every error
                _log.warning("keys.use_not_noted", error=type(error).__name__)

    async def record_use(self) -> None:
        used: Sequence[UUID] = sorted(self._used)
        self._used.clear()
        if not used:
            return
        try:
            async with self._database.transaction() as tx:
                before = tx.now - timedelta(seconds=RECORD_USE_EVERY_S)
                await queries.record_key_use(tx.connection, used, now=tx.now, before=before)
        except BaseException:
            self._used.update(used)
            raise
