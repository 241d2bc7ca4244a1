"""How many texts left and how many parts they had, by what sent them, day and country: what texts cost.

A text is counted when it leaves, and stays counted whatever becomes of it: the provider charges for it. One that is
sent again is charged again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.attribution.model import TOUCHING_STATES, Origin
from regulars.journeys.runs.lists import find_journeys_of_runs
from regulars.kit.arrays import Bigints, Ids, Labels
from regulars.kit.clock import in_zone
from regulars.kit.columns import Columns
from regulars.kit.db import Tx
from regulars.messaging.facts import MessagesChanged
from regulars.messaging.find import find_texts
from regulars.messaging.model import OriginKind, SkipReason, TextRow, TextState
from regulars.messaging.number_location import locate_number
from regulars.sales.totals.progress import find_time_zone

_BEFORE: Final = frozenset({TextState.QUEUED.value, TextState.SENDING.value})
_LEFT: Final = frozenset(TOUCHING_STATES)
_UNCHARGED: Final = frozenset({SkipReason.REFUSED.value, SkipReason.NOT_REACHED.value})


class _Key(NamedTuple):
    # As ISO text: a batch has no array of days.
    day: str
    origin_kind: str
    origin_id: UUID
    step: str
    country: str


class SentTexts(NamedTuple):
    """Texts of one origin to one country; `month` is its first day."""

    origin: Origin
    month: date
    country: str
    texts: int
    parts: int


class _Count(NamedTuple):
    day: str
    origin_kind: str
    origin_id: UUID
    step: str
    country: str
    texts: int
    parts: int


_COUNTS: Final = Columns(
    day=Labels, origin_kind=Labels, origin_id=Ids, step=Labels, country=Labels, texts=Bigints, parts=Bigints
)
_ADD: Final = _COUNTS.write(
    """
    INSERT INTO sent_texts (organization_id, {columns})
    SELECT %(organization_id)s, it.day::date, it.origin_kind, it.origin_id, it.step, it.country, it.texts, it.parts
    FROM {rows}
    ON CONFLICT (organization_id, day, origin_kind, origin_id, step, country)
    DO UPDATE SET texts = sent_texts.texts + EXCLUDED.texts, parts = sent_texts.parts + EXCLUDED.parts
    """
)


async def count_sent_texts(tx: Tx, organization_id: UUID, facts: Sequence[MessagesChanged]) -> None:
    ids = {fact.text_id for fact in facts if fact.kind == "text" and fact.text_id is not None and _has_left(fact)}
    if not ids:
        return
    rows = (await find_texts(tx, organization_id, ids)).values()
    zone = ZoneInfo(await find_time_zone(tx, organization_id))
    runs = {row.origin_id for row in rows if row.origin_kind == OriginKind.JOURNEY}
    journeys = {run: found[0] for run, found in (await find_journeys_of_runs(tx, organization_id, runs)).items()}
    texts: Counter[_Key] = Counter()
    parts: Counter[_Key] = Counter()
    for row in rows:
        key = _key_of(row, journeys.get(row.origin_id), zone)
        if key is not None:
            texts[key] += 1
            parts[key] += row.parts
    # In the order of their keys, so that two writers never deadlock.
    counted = [_Count(*key, texts[key], parts[key]) for key in sorted(texts)]
    if counted:
        await tx.execute(_ADD, {"organization_id": organization_id, **_COUNTS.of(counted)})


def _has_left(fact: MessagesChanged) -> bool:
    is_charged = fact.state in _LEFT or (fact.state == TextState.FAILED and fact.reason not in _UNCHARGED)
    return is_charged and fact.previous_state in _BEFORE


def _key_of(row: TextRow, journey_id: UUID | None, zone: ZoneInfo) -> _Key | None:
    """None for texts that no figure is about: responses to STOP and HELP, and test texts."""
    origin = None
    if row.origin_kind == OriginKind.CAMPAIGN:
        origin = Origin(OriginKind.CAMPAIGN, row.origin_id)
    elif row.origin_kind == OriginKind.JOURNEY and journey_id is not None:
        origin = Origin(OriginKind.JOURNEY, journey_id, row.step)
    elif row.origin_kind == OriginKind.PERSON:
        origin = Origin(OriginKind.PERSON)
    if origin is None:
        return None
    day = in_zone(row.claimed_at or row.created_at, zone).date().isoformat()
    country = None if row.phone_number is None else locate_number(row.phone_number).country
    return _Key(day, *origin, country or "")


async def read_sent_by_month(tx: Tx, organization_id: UUID, *, first: date, last: date) -> list[SentTexts]:
    """Texts that left on these days, by origin without its step."""
    rows = await tx.fetch(
        """
        SELECT origin_kind, origin_id, date_trunc('month', day)::date, country, sum(texts)::bigint, sum(parts)::bigint
        FROM sent_texts
        WHERE organization_id = %s AND day BETWEEN %s AND %s
        GROUP BY 1, 2, 3, 4
        """,
        (organization_id, first, last),
    )
    return [SentTexts(Origin(OriginKind(kind), origin_id), *rest) for kind, origin_id, *rest in rows]


async def read_sent_of(tx: Tx, organization_id: UUID, kind: OriginKind, origin_id: UUID) -> list[SentTexts]:
    """All texts of one campaign or journey, by step."""
    rows = await tx.fetch(
        """
        SELECT step, date_trunc('month', day)::date, country, sum(texts)::bigint, sum(parts)::bigint
        FROM sent_texts
        WHERE organization_id = %s AND origin_id = %s
        GROUP BY 1, 2, 3
        """,
        (organization_id, origin_id),
    )
    return [SentTexts(Origin(kind, origin_id, step), *rest) for step, *rest in rows]


def parts_by_country(sent: Iterable[SentTexts]) -> dict[str, int]:
    parts: Counter[str] = Counter()
    for one in sent:
        parts[one.country] += one.parts
    return dict(parts)
