"""A log file of erasures, outside the database: a restored backup must not bring an erased person back.

An erasure is appended and synced to disk before its transaction commits, and the outcome of the transaction after it.
So every committed erasure is in the log. A line has ids, keyed hashes and times, but no personal data:

    {"entry":"…","organization_id":"…","profile_id":"…","number_hashes":["…"],"erased_at":"…"}
    {"entry":"…","outcome":"committed"}      or "void", after a rollback

An entry has no outcome if the process died before the outcome was known. The person then counts as erased, and the
restore command reports it.
"""

import asyncio
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from regulars.kit import disk, log
from regulars.kit.db import Tx
from regulars.kit.errors import Unavailable
from regulars.kit.ids import new_uuid

COMMITTED: Final = "committed"
VOID: Final = "void"

_log = log.get(__name__)


class Erasure(msgspec.Struct, frozen=True):
    """A person who was erased. `is_certain` is false if the log does not show whether the erasure was committed."""

    organization_id: UUID
    profile_id: UUID
    number_hashes: tuple[bytes, ...]
    erased_at: datetime
    is_certain: bool = True


class ErasureLog:
    """The log file of one machine; all server processes on it append to the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def append(self, tx: Tx, erasures: Sequence[Erasure]) -> None:
        """Make the erasures of this transaction durable outside the database, before it commits."""
        entries = [_Entry.of(erasure) for erasure in erasures]
        # Registered before the entries are written: a write that fails or is cancelled may have written some of them,
        # and the rollback then voids them. So the log may have an outcome before its entry, or without an entry.
        tx.end_callbacks.append(partial(self._append_outcome, entries))
        try:
            await asyncio.to_thread(self._write, entries, is_synced=True)
        except OSError as error:
            _log.error("erasure_log.cannot_be_written", path=str(self.path), error=error.strerror)
            raise Unavailable(
                "The log of erasures cannot be written, so nothing was erased; try again later."
            ) from error

    def is_writable(self) -> bool:
        """Whether the file, or the nearest existing folder if there is no file yet, may be written."""
        existing = self.path
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
        return os.access(existing, os.W_OK)

    def _append_outcome(self, entries: Sequence["_Entry"], is_committed: bool) -> None:
        """Append the outcome without a sync: an entry whose outcome is lost counts as erased, which is safe for the
        person."""
        outcome: Literal["committed", "void"] = COMMITTED if is_committed else VOID
        try:
            self._write([_Outcome(entry=entry.entry, outcome=outcome) for entry in entries], is_synced=False)
        except OSError as error:
            _log.warning("erasure_log.outcome_not_written", path=str(self.path), error=error.strerror)

    def _write(self, lines: Iterable["_Entry | _Outcome"], *, is_synced: bool) -> None:
        is_new = not self.path.exists()
        if is_new:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
            # A line that a full disk or a power cut left incomplete must not be joined with the next one.
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                text = b"\n" + text
            if os.write(descriptor, text) != len(text):
                raise OSError(0, "only a part of the line was written")
            if is_synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new and is_synced:
            # A new file survives a power cut only if its folder is synced too.
            disk.sync(self.path.parent)


class LogContent(msgspec.Struct, frozen=True):
    """The erasures of a log except the void ones, and the numbers of the lines that cannot be read."""

    erasures: tuple[Erasure, ...]
    damaged_lines: tuple[int, ...]


def read_log(path: Path) -> LogContent:
    entries: dict[UUID, _Entry] = {}
    outcomes: dict[UUID, str] = {}
    damaged = []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
                if "outcome" in members:
                    outcome = msgspec.json.decode(line, type=_Outcome)
                    outcomes[outcome.entry] = outcome.outcome
                else:
                    entry = msgspec.json.decode(line, type=_Entry)
                    entry.erasure(is_certain=True)  # raises ValueError if a hash is not hexadecimal
                    entries[entry.entry] = entry
            except (msgspec.MsgspecError, ValueError):
                damaged.append(number)
    erasures = tuple(
        entry.erasure(is_certain=outcomes.get(identifier) == COMMITTED)
        for identifier, entry in entries.items()
        if outcomes.get(identifier) != VOID
    )
    return LogContent(erasures, tuple(damaged))


def merge_erasures(erasures: Iterable[Erasure]) -> list[Erasure]:
    """Keep one erasure for each person: a certain one rather than an uncertain one, then the latest."""
    by_person: dict[tuple[UUID, UUID], Erasure] = {}
    for erasure in erasures:
        key = (erasure.organization_id, erasure.profile_id)
        before = by_person.get(key)
        if before is None or (before.is_certain, before.erased_at) < (erasure.is_certain, erasure.erased_at):
            by_person[key] = erasure
    return sorted(by_person.values(), key=lambda erasure: erasure.erased_at)


class _Entry(msgspec.Struct, frozen=True):
    # The id of the entry, which the outcome repeats.
    entry: UUID
    organization_id: UUID
    profile_id: UUID
    number_hashes: tuple[str, ...]
    erased_at: Annotated[datetime, msgspec.Meta(tz=True)]

    @classmethod
    def of(cls, erasure: Erasure) -> "_Entry":
        hashes = tuple(number_hash.hex() for number_hash in erasure.number_hashes)
        return cls(new_uuid(), erasure.organization_id, erasure.profile_id, hashes, erasure.erased_at)

    def erasure(self, *, is_certain: bool) -> Erasure:
        hashes = tuple(bytes.fromhex(text) for text in self.number_hashes)
        return Erasure(self.organization_id, self.profile_id, hashes, self.erased_at, is_certain)


class _Outcome(msgspec.Struct, frozen=True):
    entry: UUID
    outcome: Literal["committed", "void"]
