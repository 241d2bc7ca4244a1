"""Counts sent texts and their parts (billed SMS) by origin, day and country, to compute their cost.

A text is counted when it is sent, whatever its outcome is, because the provider charges for it. A text that is sent
again is counted again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final, LiteralString, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.attribution.model import ORIGIN_KINDS, TOUCHING_STATES, Origin
from regulars.attribution.month_sums import split_period
from regulars.attribution.queries import DAY_KEY, MONTH_KEY
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

# The states before a text is sent, the states after it, and the reasons of failed texts that are not charged.
_UNSENT: Final = frozenset({TextState.QUEUED.value, TextState.SENDING.value})
_SENT: Final = frozenset(TOUCHING_STATES)
_UNCHARGED: Final = frozenset({SkipReason.REFUSED.value, SkipReason.NOT_REACHED.value})


class _Key(NamedTuple):
    """The key under which texts are counted."""

    # In ISO format, because `Columns` has no array type for dates.
    day: str
    origin_kind: str
    origin_id: UUID
    step: str
    country: str


class SentTexts(NamedTuple):
    """The texts of one origin to one country in one month; `month` is the month's first day."""

    origin: Origin
    month: date
    country: str
    texts: int
    parts: int


_COUNTS: Final = Columns(
    day=Labels, origin_kind=Labels, origin_id=Ids, step=Labels, country=Labels, texts=Bigints, parts=Bigints
)
_ADD: Final[LiteralString] = """
    INSERT INTO {table} AS t ({key}, {columns})
    SELECT {values}, it.day::date, it.origin_kind, it.origin_id, it.step, it.country, it.texts, it.parts
    FROM {rows}
    ON CONFLICT (organization_id, day, origin_kind, origin_id, step, country)
    DO UPDATE SET texts = t.texts + EXCLUDED.texts, parts = t.parts + EXCLUDED.parts
"""
_ADD_DAYS: Final = _COUNTS.write(_ADD, table="sent_texts", **DAY_KEY)
_ADD_MONTHS: Final = _COUNTS.write(_ADD, table="sent_text_months", **MONTH_KEY)


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
    days = [(key, parts) for key, parts in keys if key is not None]
    months = [(key._replace(day=f"{key.day[:-2]}01"), parts) for key, parts in days]
    for statement, counted in ((_ADD_DAYS, days), (_ADD_MONTHS, months)):
        await _add(tx, organization_id, statement, counted)


async def _add(tx: Tx, organization_id: UUID, statement: LiteralString, counted: Sequence[tuple[_Key, int]]) -> None:
    """Add the counts in the order of their keys, so that two writers never deadlock."""
    texts: Counter[_Key] = Counter(key for key, _ in counted)
    parts: Counter[_Key] = Counter()
    for key, number in counted:
        parts[key] += number
    if texts:
        rows = [(*key, texts[key], parts[key]) for key in sorted(texts)]
        await tx.execute(statement, {"organization_id": organization_id, **_COUNTS.of_tuples(rows)})


def _is_sent_now(fact: MessagesChanged) -> bool:
    """Whether this change means that the text was sent, so that the provider charges for it."""
    is_charged = fact.state in _SENT or (fact.state == TextState.FAILED and fact.reason not in _UNCHARGED)
    return is_charged and fact.previous_state in _UNSENT


def _key_of(row: TextRow, journey_id: UUID | None, zone: ZoneInfo) -> _Key | None:
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
    day = in_zone(row.claimed_at or row.created_at, zone).date().isoformat()
    country = None if row.phone_number is None else locate_number(row.phone_number).country
    return _Key(day, *origin, country or "")


async def read_sent_by_month(tx: Tx, organization_id: UUID, *, first: date, last: date) -> list[SentTexts]:
    """Texts that were sent from `first` to `last`, by origin and month; the steps of a journey are added up."""
    rows = await tx.fetch(
        """
        SELECT origin_kind, origin_id, day, country, sum(texts)::bigint, sum(parts)::bigint
        FROM sent_text_months
        WHERE organization_id = %(organization_id)s AND day >= %(first)s AND day < %(until)s
        GROUP BY origin_kind, origin_id, day, country
        UNION ALL
        SELECT t.origin_kind, t.origin_id, date_trunc('month', partial_month.first)::date, t.country, t.texts, t.parts
        FROM unnest((SELECT %(firsts)s::date[]), (SELECT %(lasts)s::date[])) AS partial_month (first, last)
        CROSS JOIN LATERAL (
            SELECT origin_kind, origin_id, country, sum(texts)::bigint AS texts, sum(parts)::bigint AS parts
            FROM sent_texts
            WHERE organization_id = %(organization_id)s AND day BETWEEN partial_month.first AND partial_month.last
            GROUP BY origin_kind, origin_id, country
        ) AS t
        """,
        {"organization_id": organization_id, **split_period(first, last)},
    )
    return [SentTexts(Origin(ORIGIN_KINDS[kind], origin_id), *rest) for kind, origin_id, *rest in rows]


async def read_sent_of(tx: Tx, organization_id: UUID, kind: OriginKind, origin_id: UUID) -> list[SentTexts]:
    """All texts of one campaign or journey, by step."""
    rows = await tx.fetch(
        """
        SELECT step, day, country, texts, parts FROM sent_text_months
        WHERE organization_id = %s AND origin_id = %s
        """,
        (organization_id, origin_id),
    )
    return [SentTexts(Origin(kind, origin_id, step), *rest) for step, *rest in rows]


def parts_by_country(sent: Iterable[SentTexts]) -> dict[str, int]:
    parts: Counter[str] = Counter()
    for texts in sent:
        parts[texts.country] += texts.parts
    return dict(parts)
