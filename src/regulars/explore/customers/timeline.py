"""A customer's facts in one line: tickets, returns, consents, texts, replies and journeys, the newest first, page by
page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from regulars.consent.model import Entry, Kind
from regulars.explore.ledger_labels import title_of
from regulars.journeys.model import RunRow
from regulars.kit.clock import format_timestamp, parse_timestamp
from regulars.messaging.model import ReplyRow, TextRow
from regulars.sales.tickets import CustomerTicket
from regulars.web.format import Format

PAGE_FACTS: Final = 15
KINDS: Final = {
    "all": "All",
    "tickets": "Tickets",
    "returns": "Returns",
    "consent": "Consent",
    "texts": "Texts",
    "journeys": "Journeys",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened; exactly one of what it may be is there."""

    at: datetime
    key: str
    ticket: CustomerTicket | None = None
    entry: Entry | None = None
    text: TextRow | None = None
    reply: ReplyRow | None = None
    run: RunRow | None = None

    @property
    def kind(self) -> str:
        if self.text is not None or self.reply is not None:
            return "texts"
        if self.run is not None:
            return "journeys"
        if self.ticket is None:
            return "consent"
        return "tickets" if self.ticket.type == "PURCHASE" else "returns"

    @property
    def title(self) -> str:
        """What a consent did; a ticket speaks for itself."""
        return "" if self.entry is None else title_of(self.entry)

    @property
    def is_yes(self) -> bool:
        return self.entry is not None and self.entry.kind == Kind.OPT_IN and self.entry.outcome != "superseded"

    @property
    def is_no(self) -> bool:
        return self.entry is not None and self.entry.kind != Kind.OPT_IN and self.entry.outcome != "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    facts: list[Fact]
    total: int
    # Where the next page begins, if there is one.
    older: str | None


def merge(
    tickets: Sequence[CustomerTicket],
    entries: Sequence[Entry],
    more: Sequence[Fact] = (),
    *,
    kind: str = "all",
    before: str | None = None,
) -> Timeline:
    """The facts of one kind or of all, before the position of an earlier page; an unknown position is ignored."""
    facts = [Fact(at=one.occurred_at, key=str(one.id), ticket=one) for one in tickets]
    facts += [Fact(at=one.effective_at, key=f"{one.sequence:020}", entry=one) for one in entries]
    facts += more
    fitting = sorted(
        (fact for fact in facts if kind in {"all", fact.kind}), key=lambda fact: (fact.at, fact.key), reverse=True
    )
    position = _read(before)
    shown = [fact for fact in fitting if position is None or (fact.at, fact.key) < position]
    page = shown[:PAGE_FACTS]
    older = f"{format_timestamp(page[-1].at)}~{page[-1].key}" if len(shown) > PAGE_FACTS else None
    return Timeline(facts=page, total=len(fitting), older=older)


def facts_of(texts: Sequence[TextRow], replies: Sequence[ReplyRow], runs: Sequence[RunRow]) -> list[Fact]:
    """Texts by when they left or were decided about, runs by when they began."""
    facts = [Fact(at=one.claimed_at or one.created_at, key=str(one.id), text=one) for one in texts]
    facts += [Fact(at=one.received_at, key=str(one.id), reply=one) for one in replies]
    facts += [Fact(at=one.entered_at, key=str(one.id), run=one) for one in runs]
    return facts


def by_day(facts: Sequence[Fact], formats: Format) -> list[tuple[str, list[Fact]]]:
    """The facts under the days they happened on, as the reader writes dates."""
    days: list[tuple[str, list[Fact]]] = []
    for fact in facts:
        day = formats.list_day(fact.at)
        if not days or days[-1][0] != day:
            days.append((day, []))
        days[-1][1].append(fact)
    return days


def _read(before: str | None) -> tuple[datetime, str] | None:
    moment, _, key = (before or "").partition("~")
    try:
        return (parse_timestamp(moment), key) if key else None
    except ValueError:
        return None
