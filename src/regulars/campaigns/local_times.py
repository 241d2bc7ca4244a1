"""When a campaign at a local time reaches its recipients, and when its audience is fixed: a quarter of an hour before
the first time zone that matters. Until then the campaign can be corrected."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from regulars.campaigns.definition import Definition, SendAtLocalTime
from regulars.campaigns.retention import split_ids
from regulars.consent.numbers import find_text_numbers
from regulars.experiments.arms import PERCENT
from regulars.kit.db import Tx
from regulars.kit.time_zones import zones_by_country
from regulars.sales.home_stores import find_home_stores
from regulars.segments.saved.resolve import load_context
from regulars.texts.number_location import locate_number

# How long before the first texts the audience is fixed.
FREEZE_BEFORE: Final = timedelta(minutes=15)
# A time zone matters if at least this share of the audience is in it.
MAJOR_PERCENT: Final = 1
# A sample does not decide about a share between half of that limit and twice the limit.
_UNSURE_FACTOR: Final = 2


async def find_local_times(
    tx: Tx, organization_id: UUID, schedule: SendAtLocalTime, profile_ids: Sequence[UUID]
) -> dict[UUID, datetime]:
    """The local time of each customer, in the first time zone of the number; feeding checks the permitted hours of all
    its zones. If the number belongs to no country, the zone is that of the country of the customer's home store, or
    else of the organization. A customer without a number is absent.
    """
    numbers = await find_text_numbers(tx, organization_id, profile_ids)
    zones = {it: locate_number(number.phone_number).zones for it, number in numbers.items()}
    without_zone = [it for it, zones_of_number in zones.items() if not zones_of_number]
    if without_zone:
        default_zone = await _find_zone(tx, organization_id)
        stores = await find_home_stores(tx, organization_id, without_zone)
        for it in without_zone:
            country = stores[it].country if it in stores else None
            zones[it] = zones_by_country().get(country or "") or (default_zone,)
    clock = time.fromisoformat(schedule.time)
    return {it: _at(schedule.day, clock, names[0]) for it, names in zones.items()}


async def find_first_time(
    tx: Tx, organization_id: UUID, definition: Definition, sample: Sequence[UUID], pieces: Sequence[bytes] = ()
) -> datetime | None:
    """When the first time zone that matters reaches the local time of the campaign, judged by a sample of its audience.
    If the share of a zone in the sample is near the limit, judged by the whole audience, if `pieces` has its ids. None
    if the campaign has no local time."""
    schedule = definition.schedule
    if not isinstance(schedule, SendAtLocalTime):
        return None
    counted = Counter((await find_local_times(tx, organization_id, schedule, sample)).values())
    if is_unsure(counted):
        counted = await _count_times(tx, organization_id, schedule, pieces) or counted
    first = first_major_time(counted)
    if first is not None:
        return first
    return _at(schedule.day, time.fromisoformat(schedule.time), await _find_zone(tx, organization_id))


def first_major_time(counted: Mapping[datetime, int]) -> datetime | None:
    """The first of the times that at least 1 % of the counted customers have; if there is none, the first of all."""
    return min(_times_of(counted, percent=MAJOR_PERCENT) or counted, default=None)


def is_unsure(counted: Mapping[datetime, int]) -> bool:
    """Whether the first time that matters in a sample may be another one in the audience."""
    possible = _times_of(counted, percent=MAJOR_PERCENT / _UNSURE_FACTOR)
    certain = _times_of(counted, percent=MAJOR_PERCENT * _UNSURE_FACTOR)
    return bool(possible) and min(possible) not in certain


def _times_of(counted: Mapping[datetime, int], *, percent: float) -> Collection[datetime]:
    """The times that at least `percent` of the counted customers have."""
    total = sum(counted.values())
    return [at for at, customers in counted.items() if customers * PERCENT >= percent * total]


async def _count_times(
    tx: Tx, organization_id: UUID, schedule: SendAtLocalTime, pieces: Sequence[bytes]
) -> Counter[datetime]:
    """The customers of the whole audience at each local time, one piece in each statement."""
    counted = Counter[datetime]()
    for piece in pieces:
        profile_ids = [UUID(bytes=it) for it in split_ids(piece)]
        counted.update((await find_local_times(tx, organization_id, schedule, profile_ids)).values())
    return counted


async def _find_zone(tx: Tx, organization_id: UUID) -> str:
    return (await load_context(tx, organization_id, [])).zone.key


def _at(day: date, clock: time, zone: str) -> datetime:
    return datetime.combine(day, clock, ZoneInfo(zone)).astimezone(UTC)
