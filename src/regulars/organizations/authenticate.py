"""From the `x-api-key` header to the caller, with a cache that cannot keep a revoked key alive for over a second."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from regulars.kit import log
from regulars.kit.clock import monotonic
from regulars.kit.db import CONNECTION_ERRORS, Database
from regulars.organizations import queries
from regulars.organizations.model import KeyHolder, hash_key, is_well_formed

CACHE_S = 1.0
# A busy key is confirmed again before its second is over, so that its callers never all ask at once.
REFRESH_AFTER_S = 0.5
CACHED_KEYS_MAX = 10_000
NOTE_USE_EVERY_S = 60

_log = log.get(__name__)


class Authenticator:
    """One per process. It also remembers which keys were used, and notes it at most once a minute, off the request."""

    def __init__(self, database: Database, *, default_country: str | None = None) -> None:
        self._database = database
        self._default_country = default_country
        self._cache: dict[bytes, tuple[float, KeyHolder]] = {}
        self._asking: dict[bytes, asyncio.Task[KeyHolder | None]] = {}
        self._used: set[UUID] = set()

    def cached(self, key: bytes) -> KeyHolder | None:
        """The caller if this very key was confirmed less than a second ago."""
        entry = self._cache.get(key)
        if entry is None:
            return None
        age_s = monotonic() - entry[0]
        if age_s > REFRESH_AFTER_S:
            self._ask(key)
        return entry[1] if age_s <= CACHE_S else None

    async def authenticate(self, key: bytes) -> KeyHolder | None:
        caller = self.cached(key)
        if caller is not None:
            return caller
        if not is_well_formed(key.decode("latin-1")):
            return None
        return await asyncio.shield(self._ask(key))

    def _ask(self, key: bytes) -> "asyncio.Task[KeyHolder | None]":
        """The question to the database about this key: one at a time, shared by all who wait for it."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._look_up(key))
            task.add_done_callback(lambda done: self._asked(key, done))
        return task

    def _asked(self, key: bytes, task: "asyncio.Task[KeyHolder | None]") -> None:
        del self._asking[key]
        # Nobody may have waited for a refresh: look at its failure, so that it is not reported as forgotten.
        if not task.cancelled() and isinstance(error := task.exception(), CONNECTION_ERRORS):
            _log.warning("keys.database_unavailable", error=type(error).__name__)

    async def _look_up(self, key: bytes) -> KeyHolder | None:
        # The age of the cached answer counts from before the question, so a slow query cannot stretch it.
        asked_at = monotonic()
        async with self._database.connection() as connection:
            found = await queries.find_live_key(connection, hash_key(key.decode("latin-1")))
        if found is None:
            self._cache.pop(key, None)
            return None
        key_id, organization_id, secret, default_country = found
        caller = KeyHolder(organization_id, key_id, secret, default_country or self._default_country)
        if len(self._cache) >= CACHED_KEYS_MAX:
            self._cache.clear()
        self._cache[key] = (asked_at, caller)
        self._used.add(key_id)
        return caller

    async def note_use_forever(self) -> None:
        while True:
            await asyncio.sleep(NOTE_USE_EVERY_S)
            try:
                await self.note_use()
            except CONNECTION_ERRORS as error:
                _log.warning("keys.use_not_noted", error=type(error).__name__)

    async def note_use(self) -> None:
        used: Sequence[UUID] = sorted(self._used)
        self._used.clear()
        if not used:
            return
        async with self._database.transaction() as tx:
            await queries.touch_keys(
                tx.connection, used, now=tx.now, before=tx.now - timedelta(seconds=NOTE_USE_EVERY_S)
            )
