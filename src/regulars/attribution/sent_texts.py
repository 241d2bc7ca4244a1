"""Counts sent texts and their parts (billed SMS) by origin, day and country, to compute their cost.

A text is counted when it is sent, whatever its outcome is, because the provider charges for it. A text that is sent
again is counted again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.attribution.model import TOUCHING_STATES, Origin
from regulars.attribution.month_tables import MonthTables, TotalKey
from regulars.journeys.runs.lists import find_journeys_of_runs
from regulars.kit.clock import in_zone
from regulars.kit.db import Tx
from regulars.links.origin_kind import OriginKind
from regulars.sales.totals.progress import find_time_zone
from regulars.texts.facts import MessagesChanged
from regulars.texts.find import find_texts
from regulars.texts.labels import read_reason
from regulars.texts.model import UNCHARGED_REASONS, TextRow, TextState
from regulars.texts.number_location import locate_number

# The states before a text is sent, and the states after it.
_UNSENT: Final = frozenset({TextState.QUEUED.value, TextState.SENDING.value})
_SENT: Final = frozenset(TOUCHING_STATES)


class SentTexts(NamedTuple):
    """The texts of one origin to one country in one month; `month` is the month's first day."""

    origin: Origin
    month: date
    country: str
    texts: int
    parts: int


SENT: Final = MonthTables(
    days="sent_texts",
    months="sent_text_months",
    group="country",
    sums={"texts": "bigint", "parts": "bigint"},
    make=SentTexts,
)
read_sent_by_month: Final = SENT.read
read_sent_of: Final = SENT.read_origin


async def find_last_sent_day(tx: Tx, organization_id: UUID, *, since: date) -> date | None:
    """Return the last day with counted texts since a day; None if there is none."""
    return await tx.fetch_value(
        "SELECT day FROM sent_texts WHERE organization_id = %s AND day >= %s ORDER BY day DESC LIMIT 1",
        (organization_id, since),
    )


async def count_sent_texts(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    """Listener of changed texts: count the texts that were sent."""
    ids = {fact.text_id for fact in facts if fact.kind == "text" and fact.text_id is not None and _is_sent_now(fact)}
    if not ids:
        return
    rows = (await find_texts(tx, organization_id, ids)).values()
    zone = ZoneInfo(await find_time_zone(tx, organization_id))
    runs = {row.origin_id for row in rows if row.origin_kind == OriginKind.JOURNEY}
    journeys = {run: row[0] for run, row in (await find_journeys_of_runs(tx, organization_id, runs)).items()}
    keys = [(_key_of(row, journeys.get(row.origin_id), zone), row.parts) for row in rows]
    await SENT.add(tx, organization_id, [(key, (1, parts)) for key, parts in keys if key is not None])


def _is_sent_now(fact: MessagesChanged) -> bool:
    """Whether this change means that the text was sent, so that the provider charges for it."""
    has_failed = fact.state == TextState.FAILED and read_reason(fact.reason) not in UNCHARGED_REASONS
    return (fact.state in _SENT or has_failed) and fact.previous_state in _UNSENT


def _key_of(row: TextRow, journey_id: UUID | None, zone: ZoneInfo) -> TotalKey | None:
    """The key of a text; None for texts that are not counted: responses to STOP and HELP, and test texts."""
    origin = None
    if row.origin_kind == OriginKind.CAMPAIGN:
        origin = Origin(OriginKind.CAMPAIGN, row.origin_id)
    elif row.origin_kind == OriginKind.JOURNEY and journey_id is not None:
        origin = Origin(OriginKind.JOURNEY, journey_id, row.step)
    elif row.origin_kind == OriginKind.PERSON:
        origin = Origin(OriginKind.PERSON)
    if origin is None:
        return None
    # A worker claims a text when it sends it.
    day = in_zone(row.claimed_at or row.created_at, zone).date()
    country = None if row.phone_number is None else locate_number(row.phone_number).country
    return TotalKey(day, *origin, country or "")


def parts_by_country(sent: Iterable[SentTexts]) -> dict[str, int]:
    parts: Counter[str] = Counter()
    for texts in sent:
        parts[texts.country] += texts.parts
    return dict(parts)
