"""Were we allowed to text this number at that moment, and why? Two answers, which may differ.

What was *recorded* by then is what a sender could have known: only entries that had arrived. What is *known* now counts
every entry by its own time, also a withdrawal that a shop sent in a week late. A dispute is usually about the first.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from regulars.consent.browse import queries
from regulars.consent.model import Entry, Kind
from regulars.kit.db import Tx


@dataclass(frozen=True, slots=True)
class Judgement:
    """Yes or no, and the entry that decides it; None where nothing had been said."""

    may_text: bool
    entry: Entry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    at: datetime
    recorded: Judgement
    known: Judgement
    # What ended the state that held at the moment, if anything did since.
    next: Entry | None

    @property
    def differs(self) -> bool:
        return self.recorded.may_text != self.known.may_text


async def were_we_allowed(tx: Tx, organization_id: UUID, subscription_id: UUID, at: datetime) -> Answer:
    recorded = await queries.find_deciding_entry(tx, organization_id, subscription_id, at=at, received_until=at)
    known = await queries.find_deciding_entry(tx, organization_id, subscription_id, at=at, received_until=tx.now)
    judged = _judge(known)
    following = await queries.find_next_change(
        tx, organization_id, subscription_id, after=at, is_opt_in=not judged.may_text
    )
    return Answer(at=at, recorded=_judge(recorded), known=judged, next=following)


def _judge(entry: Entry | None) -> Judgement:
    return Judgement(entry is not None and entry.kind == Kind.OPT_IN, entry)
