"""Verify a history: the chain has no gap, payloads match their commitments, and the head matches the entries."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from regulars.consent import chain, queries
from regulars.consent.history import list_entries
from regulars.consent.model import Kind, LedgerEntry, status_of
from regulars.consent.queries import HeadRow
from regulars.kit.commitments import commit
from regulars.kit.db import Database, Tx

PAGE_ENTRIES = 1000
PAGE_SUBSCRIPTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """`fault` is None if the history is intact; otherwise a sentence. `fault_sequence` is the entry with the fault, if
    it is in an entry."""

    entries: int
    payloads_erased: int
    fault: str | None = None
    fault_sequence: int | None = None


async def verify_subscription(tx: Tx, organization_id: UUID, subscription_id: UUID) -> Verification | None:
    """Walk the chain from its beginning to the hash in the head; None if there is no such subscription."""
    found = await queries.find_subscription(tx, organization_id, subscription_id)
    if found is None:
        return None
    walk = _Walk(previous_hash=chain.genesis(organization_id, subscription_id))
    while walk.entries < found.head.entry_count:
        # Entries that arrive meanwhile are beyond the head that was read, and not part of this verification.
        limit = min(PAGE_ENTRIES, found.head.entry_count - walk.entries)
        page = await list_entries(tx, organization_id, subscription_id, after=walk.entries, limit=limit)
        if not page:
            return walk.end("entries are missing at the end")
        for entry in page:
            fault = walk.step(entry)
            if fault is not None:
                return walk.end(fault, entry.sequence)
    return walk.end(walk.compare(found.head))


@dataclass(slots=True)
class Audit:
    """The verification of an organization; `faults` has a sentence for each subscription that is not intact."""

    subscriptions: int = 0
    entries: int = 0
    payloads_erased: int = 0
    faults: dict[UUID, str] = field(default_factory=dict)

    def add(self, subscription_id: UUID, verification: Verification) -> None:
        self.subscriptions += 1
        self.entries += verification.entries
        self.payloads_erased += verification.payloads_erased
        if verification.fault is not None:
            where = "" if verification.fault_sequence is None else f"entry {verification.fault_sequence}: "
            self.faults[subscription_id] = where + verification.fault


async def verify_organization(
    database: Database, organization_id: UUID, *, on_progress: Callable[[int], None] = lambda _: None
) -> Audit:
    """Verify the chains of all its numbers. New events may arrive meanwhile: each chain is verified up to the head that
    was read."""
    audit, after = Audit(), None
    while True:
        async with database.reading() as tx:
            page = await queries.list_subscriptions(tx, organization_id, after=after, limit=PAGE_SUBSCRIPTIONS)
            for found in page:
                verification = await verify_subscription(tx, organization_id, found.head.id)
                if verification is not None:
                    audit.add(found.head.id, verification)
        if not page:
            return audit
        after = page[-1].head.id
        on_progress(len(page))


@dataclass(slots=True)
class _Walk:
    previous_hash: bytes
    entries: int = 0
    payloads_erased: int = 0
    latest_opt_in_at: datetime | None = None
    latest_opt_out_at: datetime | None = None

    def step(self, entry: LedgerEntry) -> str | None:
        """Verify one entry, or describe its error."""
        if entry.sequence != self.entries + 1:
            return "an entry before this one is missing"
        if entry.previous_hash != self.previous_hash:
            return "it is not chained to the entry before it"
        link = chain.ChainLink(*entry[:8])
        if not hmac.compare_digest(chain.hash_link(link), entry.hash):
            return "its hash is not the hash of what it says"
        if entry.salt is None or entry.payload is None:
            self.payloads_erased += 1
        elif not hmac.compare_digest(commit(entry.salt, entry.payload.encode()), entry.commitment):
            return "its payload is not the one it commits to"
        self._add_time(entry)
        self.previous_hash, self.entries = entry.hash, entry.sequence
        return None

    def compare(self, head: HeadRow) -> str | None:
        """Describe how the head differs from the state that follows from the entries."""
        if head.last_hash != self.previous_hash:
            return "the head has another last hash"
        if head.state is None:
            return "the head has no entry"
        times = (self.latest_opt_in_at, self.latest_opt_out_at)
        if (head.state.latest_opt_in_at, head.state.latest_opt_out_at) != times:
            return "the head has other latest times"
        if head.status != status_of(*times):
            return "the head has another status"
        return None

    def end(self, fault: str | None, sequence: int | None = None) -> Verification:
        return Verification(
            entries=self.entries, payloads_erased=self.payloads_erased, fault=fault, fault_sequence=sequence
        )

    def _add_time(self, entry: LedgerEntry) -> None:
        if entry.kind == Kind.OPT_IN:
            self.latest_opt_in_at = max(self.latest_opt_in_at or entry.effective_at, entry.effective_at)
        else:
            self.latest_opt_out_at = max(self.latest_opt_out_at or entry.effective_at, entry.effective_at)
