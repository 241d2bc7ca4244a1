"""Authenticate the `x-api-key` header, with a cache that accepts a revoked key for at most a second."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from regulars.kit import log
from regulars.kit.arrays import Blobs
from regulars.kit.bounded_cache import BoundedCache
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database, Tx
from regulars.kit.vault import VaultError
from regulars.organizations.model import ApiCaller, Permission, hash_key, is_well_formed
from regulars.organizations.secret import open_secret

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
        self._cache = BoundedCache[bytes, _CachedKey](CACHED_KEYS_MAX)
        self._queries: dict[bytes, asyncio.Task[ApiCaller | None]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._used: set[UUID] = set()

    def cached(self, key: bytes) -> ApiCaller | None:
        """Return the caller, if the database confirmed this key less than a second ago."""
        entry = self._cache.entries.get(key)
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
        entry = self._cache.entries.get(key)
        return None if entry is None else entry.caller

    async def _refresh(self) -> None:
        """Query all busy keys whose cache entry expires soon."""
        queried_before = monotonic() - REFRESH_ALONG_AFTER_S
        try:
            entries = self._cache.entries.items()
            await self._confirm([key for key, entry in entries if entry.is_used and entry.queried_at < queried_before])
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
            callers = await self._find_callers(tx, list(hashes.values()))
        failed: dict[bytes, VaultError] = {}
        for key, key_hash in hashes.items():
            caller = callers.get(key_hash)
            if caller is None or isinstance(caller, VaultError):
                self._cache.drop(key)
                if caller is not None:
                    failed[key] = caller
                continue
            self._cache.add(key, _CachedKey(queried_at, caller))
            self._used.add(caller.api_key_id)
        return failed

    async def _find_callers(self, tx: Tx, key_hashes: Sequence[bytes]) -> dict[bytes, ApiCaller | VaultError]:
        """Find the callers of keys that are not revoked, by hash. A secret that cannot be decrypted affects only the
        keys of its organization."""
        rows = await tx.fetch(
            "SELECT wanted.key_hash, o.id, k.id, o.secret, o.sealed_secret, o.default_country, k.permission"
            " FROM unnest(%s::bytea[]) AS wanted (key_hash)"
            " CROSS JOIN LATERAL (SELECT id, organization_id, permission FROM api_keys"
            "   WHERE key_hash = wanted.key_hash AND revoked_at IS NULL LIMIT 1) AS k"
            " CROSS JOIN LATERAL (SELECT id, secret, sealed_secret, default_country FROM organizations"
            "   WHERE id = k.organization_id LIMIT 1) AS o",
            (Blobs(key_hashes),),
        )
        callers: dict[bytes, ApiCaller | VaultError] = {}
        for key_hash, organization_id, key_id, plain, sealed, country, permission in rows:
            try:
                secret = open_secret(organization_id, plain, sealed)
            except VaultError as error:
                callers[key_hash] = error
                continue
            default_country = country or self._default_country
            callers[key_hash] = ApiCaller(
                organization_id, key_id, secret, default_country, is_ingest_only=permission != Permission.FULL
            )
        return callers

    async def record_use_forever(self) -> None:
        while True:
            await asyncio.sleep(RECORD_USE_EVERY_S)
            try:
                await self.record_use()
            except Exception as error:  # noqa: BLE001  # the task is never restarted, so it must survive every error
                _log.warning("keys.use_not_noted", error=type(error).__name__)

    async def record_use(self) -> None:
        used = sorted(self._used)
        self._used.clear()
        if not used:
            return
        try:
            async with self._database.transaction() as tx:
                await tx.execute(
                    "UPDATE api_keys SET last_used_at = %s"
                    " WHERE id = ANY(%s) AND (last_used_at IS NULL OR last_used_at < %s)",
                    (tx.now, used, tx.now - timedelta(seconds=RECORD_USE_EVERY_S)),
                )
        except BaseException:
            self._used.update(used)
            raise
