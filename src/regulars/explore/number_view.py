"""Load what pages show about a phone number: its consent, its ledger entries, a chart over time, and whether it could
be texted at a time that the user chose."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from regulars.conditions.labels import SOURCES
from regulars.consent.history import ConsentAtTime, find_consent_at, list_last_entries
from regulars.consent.model import Kind, LedgerEntry
from regulars.consent.subscription import Subscription
from regulars.consent.verify import Verification, verify_subscription
from regulars.explore.ledger_labels import EntryView, describe
from regulars.kit.clock import in_zone
from regulars.kit.db import Tx
from regulars.kit.ids import API_KEY
from regulars.organizations.manage import list_keys
from regulars.web.charts import ConsentChange, Strip, consent_strip
from regulars.web.format import Format
from regulars.web.visit import Visit

ENTRIES_SHOWN: Final = 100
# A page verifies a hash chain of up to this many ledger entries; the command line and the certificate verify any.
ENTRIES_VERIFIED_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class NumberLabels:
    formats: Format

    def source(self, source: str | None) -> str:
        return SOURCES.get(source or "OTHER", source or "")

    def field(self, moment: datetime | None) -> str:
        """A time in the format of an HTML field for date and time."""
        return "" if moment is None else in_zone(moment, self.formats.zone).strftime("%Y-%m-%dT%H:%M")


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberView:
    labels: NumberLabels
    subscription: Subscription
    entries: list[LedgerEntry]
    entry_views: list[EntryView]
    has_older: bool
    verification: Verification | None
    # The chart of consent over time, and the time at which it begins.
    strip: Strip
    begins_at: datetime
    # The time that the user chose, whether the number could be texted then, and the ledger entries that decide it.
    checked_at: datetime | None
    answer: ConsentAtTime | None
    answer_entries: dict[int, EntryView]


async def read_number(tx: Tx, visit: Visit, subscription: Subscription, *, checked_at: datetime | None) -> NumberView:
    entries = await list_last_entries(tx, visit.organization_id, subscription.id, limit=ENTRIES_SHOWN)
    key_names = {API_KEY.encode(key.id): key.name for key in await list_keys(tx.connection, visit.organization_id)}
    chain_length = entries[-1].sequence if entries else 0
    verification = None
    if chain_length <= ENTRIES_VERIFIED_MAX:
        verification = await verify_subscription(tx, visit.organization_id, subscription.id)
    answer = None
    if checked_at is not None:
        answer = await find_consent_at(tx, visit.organization_id, subscription.id, checked_at)
    known_since = min([subscription.created_at, *(entry.effective_at for entry in entries)])
    start = known_since if checked_at is None else min(known_since, checked_at)
    return NumberView(
        labels=NumberLabels(visit.format),
        subscription=subscription,
        entries=entries,
        entry_views=[describe(visit, entry, key_names) for entry in entries],
        has_older=bool(entries) and entries[0].sequence > 1,
        verification=verification,
        strip=consent_strip(_order_changes(entries), start=start, end=visit.now, marked_at=checked_at),
        begins_at=start,
        checked_at=checked_at,
        answer=answer,
        answer_entries=describe_answer(visit, answer, key_names),
    )


def describe_answer(visit: Visit, answer: ConsentAtTime | None, key_names: Mapping[str, str]) -> dict[int, EntryView]:
    """The ledger entries that decide by what was recorded at that time and by what is known now, and the next entry, by
    their sequence number."""
    entries = [] if answer is None else [answer.recorded.entry, answer.known.entry, answer.next]
    return {entry.sequence: describe(visit, entry, key_names) for entry in entries if entry is not None}


def _order_changes(entries: list[LedgerEntry]) -> list[ConsentChange]:
    """The entries in the order in which they took effect."""
    ordered = sorted(entries, key=lambda entry: (entry.effective_at, entry.kind != Kind.OPT_IN, entry.sequence))
    return [ConsentChange(entry.effective_at, entry.kind == Kind.OPT_IN) for entry in ordered]


def read_local_time(visit: Visit, text: str | None) -> datetime | None:
    """Parse an HTML field for date and time in the organization's time zone; None if it is invalid."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    local = moment if moment.tzinfo is not None else moment.replace(tzinfo=visit.format.zone)
    try:
        # Times in the years 1 and 9999 cannot be converted to every time zone.
        local.timestamp()
        return local.astimezone(visit.now.tzinfo)
    except (OverflowError, ValueError):
        return None
