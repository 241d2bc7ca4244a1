"""The timeline of a customer: tickets, returns, consents, texts, replies, journeys and campaigns, newest first, in
pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.campaigns.recipients import RecipientOfPerson
from regulars.consent.model import Kind, LedgerEntry
from regulars.explore.ledger_labels import title_of
from regulars.journeys.model import RunRow
from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.messaging.model import OriginKind, ReplyRow, TextRow
from regulars.sales.tickets import CustomerTicket
from regulars.web.format import Format

PAGE_ENTRIES: Final = 15
KINDS: Final = {
    "all": "All",
    "tickets": "Tickets",
    "returns": "Returns",
    "consent": "Consent",
    "texts": "Texts",
    "journeys": "Journeys",
}
# Labels for recipients of a campaign without a text, by reason or outcome.
NO_TEXT: Final = {
    "held_out": "Held out: they get no text, so that its effect can be measured.",
    "global_holdout": "In the global holdout: they get no text of a campaign in this quarter.",
    "waiting": "They wait for their text.",
    "expired": "The campaign ended before their turn.",
    "cancelled": "The campaign was cancelled before their turn.",
    "same_number": "Another customer with the same number got the text.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One event of the timeline; exactly one of its optional fields is set."""

    at: datetime
    key: str
    ticket: CustomerTicket | None = None
    ledger_entry: LedgerEntry | None = None
    text: TextRow | None = None
    reply: ReplyRow | None = None
    run: RunRow | None = None
    # A campaign that sent the customer no text.
    recipient: RecipientOfPerson | None = None

    @property
    def kind(self) -> str:
        if self.text is not None or self.reply is not None or self.recipient is not None:
            return "texts"
        if self.run is not None:
            return "journeys"
        if self.ticket is None:
            return "consent"
        return "tickets" if self.ticket.type == "PURCHASE" else "returns"

    @property
    def campaign_id(self) -> UUID | None:
        if self.text is not None and self.text.origin_kind == OriginKind.CAMPAIGN:
            return self.text.origin_id
        return None if self.recipient is None else self.recipient.campaign_id

    @property
    def title(self) -> str:
        """The label of a consent entry, or the reason why a campaign sent no text; empty for tickets."""
        if self.recipient is not None:
            return NO_TEXT[self.recipient.reason or self.recipient.outcome]
        return "" if self.ledger_entry is None else title_of(self.ledger_entry)

    @property
    def is_opt_in(self) -> bool:
        return (
            self.ledger_entry is not None
            and self.ledger_entry.kind == Kind.OPT_IN
            and self.ledger_entry.outcome != "superseded"
        )

    @property
    def is_withdrawal(self) -> bool:
        return (
            self.ledger_entry is not None
            and self.ledger_entry.kind != Kind.OPT_IN
            and self.ledger_entry.outcome != "superseded"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    # The events of this page, newest first.
    entries: list[TimelineEntry]
    # The number of events on all pages.
    total: int
    # Where the next page begins, if there is one.
    older: str | None


def merge(
    tickets: Sequence[CustomerTicket],
    ledger_entries: Sequence[LedgerEntry],
    other_entries: Sequence[TimelineEntry] = (),
    *,
    kind: str = "all",
    before: str | None = None,
) -> Timeline:
    """Merge the events of one kind or of all, older than the last one of the previous page; an invalid position is
    ignored."""
    entries = [TimelineEntry(at=one.occurred_at, key=str(one.id), ticket=one) for one in tickets]
    entries += [
        TimelineEntry(at=one.effective_at, key=f"{one.sequence:020}", ledger_entry=one) for one in ledger_entries
    ]
    entries += other_entries
    matching = sorted(
        (entry for entry in entries if kind in {"all", entry.kind}),
        key=lambda entry: (entry.at, entry.key),
        reverse=True,
    )
    position = _read(before)
    shown = [entry for entry in matching if position is None or (entry.at, entry.key) < position]
    page = shown[:PAGE_ENTRIES]
    older = f"{format_timestamp(page[-1].at)}~{page[-1].key}" if len(shown) > PAGE_ENTRIES else None
    return Timeline(entries=page, total=len(matching), older=older)


def entries_of(
    texts: Sequence[TextRow],
    replies: Sequence[ReplyRow],
    runs: Sequence[RunRow],
    recipients: Sequence[RecipientOfPerson],
) -> list[TimelineEntry]:
    """Texts have the time of sending or of the decision not to send, runs the time of entry, and campaigns without a
    text the time when their audience was stored."""
    entries = [TimelineEntry(at=one.claimed_at or one.created_at, key=str(one.id), text=one) for one in texts]
    entries += [TimelineEntry(at=one.received_at, key=str(one.id), reply=one) for one in replies]
    entries += [TimelineEntry(at=one.entered_at, key=str(one.id), run=one) for one in runs]
    texted = {entry.campaign_id for entry in entries}
    entries += [
        TimelineEntry(at=one.created_at, key=str(one.campaign_id), recipient=one)
        for one in recipients
        if one.campaign_id not in texted and (one.reason or one.outcome) in NO_TEXT
    ]
    return entries


def by_day(entries: Sequence[TimelineEntry], formats: Format) -> list[tuple[str, list[TimelineEntry]]]:
    """Group the events by day, with dates in the user's format."""
    days: list[tuple[str, list[TimelineEntry]]] = []
    for entry in entries:
        day = formats.list_day(entry.at)
        if not days or days[-1][0] != day:
            days.append((day, []))
        days[-1][1].append(entry)
    return days


def _read(before: str | None) -> tuple[datetime, str] | None:
    moment, _, key = (before or "").partition("~")
    try:
        return (parse_timestamp(moment), key) if key else None
    except ValueError:
        return None
