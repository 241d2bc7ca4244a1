"""Build the timeline on the page of a customer: tickets, returns, consents, texts, replies, journeys and campaigns,
newest first, in pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from regulars.campaigns.recipients import RecipientOfPerson
from regulars.consent.model import LedgerEntry
from regulars.explore.ledger_labels import kind_of, title_of
from regulars.journeys.model import RunRow
from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.links.origin_kind import OriginKind
from regulars.sales.tickets import CustomerTicket
from regulars.texts.model import ReplyRow, TextRow
from regulars.web.format import Format

PAGE_ENTRIES: Final = 15
KINDS: Final = {
    "all": "All",
    "tickets": "Purchases",
    "returns": "Returns",
    "consent": "Consent",
    "texts": "Texts",
    "journeys": "Journeys",
}
# Why a campaign sent the customer no text, by the recipient's reason or outcome.
NO_TEXT: Final = {
    "held_out": "Held out: gets no text, so that the effect of the campaign can be measured.",
    "global_holdout": "In the global holdout: gets no campaign text in this quarter.",
    "waiting": "The text waits to be sent.",
    "expired": "The campaign ended before this text was sent.",
    "cancelled": "The campaign was cancelled before this text was sent.",
    "same_number": "Another customer with the same number got the text.",
    "local_time_passed": "The local time had passed when the audience was fixed.",
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
        return self.ledger_entry is not None and kind_of(self.ledger_entry) == "yes"

    @property
    def is_withdrawal(self) -> bool:
        return self.ledger_entry is not None and kind_of(self.ledger_entry) == "no"


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
    """Merge the events of one kind (or `all`) to the page that follows the position `before`, which is the last event
    of the previous page; an invalid position is ignored."""
    entries = [TimelineEntry(at=ticket.occurred_at, key=str(ticket.id), ticket=ticket) for ticket in tickets]
    entries += [
        TimelineEntry(at=entry.effective_at, key=f"{entry.sequence:020}", ledger_entry=entry)
        for entry in ledger_entries
    ]
    entries += other_entries
    matching = sorted(
        (entry for entry in entries if kind in {"all", entry.kind}),
        key=lambda entry: (entry.at, entry.key),
        reverse=True,
    )
    position = _parse_position(before)
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
    """A text is listed at the time when it was sent or skipped, a journey when the customer entered it, and a campaign
    without a text when its audience was stored."""
    entries = [TimelineEntry(at=text.claimed_at or text.created_at, key=str(text.id), text=text) for text in texts]
    entries += [TimelineEntry(at=reply.received_at, key=str(reply.id), reply=reply) for reply in replies]
    entries += [TimelineEntry(at=run.entered_at, key=str(run.id), run=run) for run in runs]
    campaigns_with_text = {entry.campaign_id for entry in entries}
    entries += [
        TimelineEntry(at=recipient.created_at, key=str(recipient.campaign_id), recipient=recipient)
        for recipient in recipients
        if recipient.campaign_id not in campaigns_with_text and (recipient.reason or recipient.outcome) in NO_TEXT
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


def _parse_position(before: str | None) -> tuple[datetime, str] | None:
    moment, _, key = (before or "").partition("~")
    try:
        return (parse_timestamp(moment), key) if key else None
    except ValueError:
        return None
