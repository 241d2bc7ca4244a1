"""Verify the consent ledger of a phone number: no entry is missing or changed, and the stored state is right."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from regulars.consent import chain, queries
from regulars.consent.history import list_entries
from regulars.consent.model import Kind, LedgerEntry, status_of
from regulars.consent.queries import LedgerHead
from regulars.kit.commitments import commit
from regulars.kit.db import Database, Tx

PAGE_ENTRIES = 1000
PAGE_SUBSCRIPTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result for one ledger. `fault` describes the first error, None if there is none; `fault_sequence` is the
    entry with the error, None if it is in the head."""

    entries: int
    payloads_erased: int
    fault: str | None = None
    fault_sequence: int | None = None


async def verify_subscription(tx: Tx, organization_id: UUID, subscription_id: UUID) -> Verification | None:
    """Verify every entry, and that the head (the row with the current state and the last hash) agrees with the entries;
    None if there is no such subscription."""
    row = await queries.find_subscription(tx, organization_id, subscription_id)
    if row is None:
        return None
    verifier = _LedgerVerifier(previous_hash=chain.genesis_hash(organization_id, subscription_id))
    while verifier.entries < row.ledger_head.entry_count:
        # Entries that arrive during the verification are not part of it: the head that was read does not count them.
        limit = min(PAGE_ENTRIES, row.ledger_head.entry_count - verifier.entries)
        page = await list_entries(tx, organization_id, subscription_id, after=verifier.entries, limit=limit)
        if not page:
            return verifier.result("entries are missing at the end")
        for entry in page:
            fault = verifier.verify_entry(entry)
            if fault is not None:
                return verifier.result(fault, entry.sequence)
    return verifier.result(verifier.verify_head(row.ledger_head))


@dataclass(slots=True)
class Audit:
    """The verification of an organization's ledgers; `faults` describes the error of each damaged ledger."""

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
    """Verify the ledgers of all numbers of an organization."""
    audit, after = Audit(), UUID(int=0)
    while True:
        async with database.reading() as tx:
            page = await tx.fetch_column(
                "SELECT id FROM subscriptions WHERE organization_id = %s AND id > %s ORDER BY id LIMIT %s",
                (organization_id, after, PAGE_SUBSCRIPTIONS),
            )
            for subscription_id in page:
                verification = await verify_subscription(tx, organization_id, subscription_id)
                if verification is not None:
                    audit.add(subscription_id, verification)
        if not page:
            return audit
        after = page[-1]
        on_progress(len(page))


@dataclass(slots=True)
class _LedgerVerifier:
    """Verifies entries in their order, and remembers the last hash and the latest opt-in and opt-out."""

    previous_hash: bytes
    entries: int = 0
    payloads_erased: int = 0
    latest_opt_in_at: datetime | None = None
    latest_opt_out_at: datetime | None = None

    def verify_entry(self, entry: LedgerEntry) -> str | None:
        """Describe the error of the entry that follows; None if it has none."""
        if entry.sequence != self.entries + 1:
            return "an entry before this one is missing"
        if entry.previous_hash != self.previous_hash:
            return "it is not chained to the entry before it"
        if not hmac.compare_digest(chain.hash_link(entry), entry.hash):
            return "its hash is not the hash of what it says"
        if entry.salt is None or entry.payload is None:
            self.payloads_erased += 1
        elif not hmac.compare_digest(commit(entry.salt, entry.payload.encode()), entry.commitment):
            return "its payload is not the one it commits to"
        self._add_time(entry)
        self.previous_hash, self.entries = entry.hash, entry.sequence
        return None

    def verify_head(self, head: LedgerHead) -> str | None:
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

    def result(self, fault: str | None, sequence: int | None = None) -> Verification:
        return Verification(
            entries=self.entries, payloads_erased=self.payloads_erased, fault=fault, fault_sequence=sequence
        )

    def _add_time(self, entry: LedgerEntry) -> None:
        if entry.kind == Kind.OPT_IN:
            self.latest_opt_in_at = max(self.latest_opt_in_at or entry.effective_at, entry.effective_at)
        else:
            self.latest_opt_out_at = max(self.latest_opt_out_at or entry.effective_at, entry.effective_at)
