"""Computes when the waiting steps of a journey end, and in which time zone. No I/O."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from regulars.journeys.definition import WEEKDAYS, WaitUntil
from regulars.kit.time_zones import zones_by_country
from regulars.texts.number_location import locate_number


def next_local_time(step: WaitUntil, since: datetime, zone: str) -> datetime:
    """The first time after `since` at the local time of the step, on one of its weekdays if it has any."""
    local_zone = ZoneInfo(zone)
    local_since = since.astimezone(local_zone)
    hour, minute = (int(part) for part in step.time.split(":"))
    # The time of today may be over, so the same weekday of the next week is tried too.
    for days_later in range(9):
        day = (local_since + timedelta(days=days_later)).date()
        candidate = datetime.combine(day, time(hour, minute), local_zone).astimezone(UTC)
        if candidate > since and (not step.weekdays or WEEKDAYS[day.weekday()] in step.weekdays):
            return candidate
    raise AssertionError("a week has every weekday")


def choose_zone(phone_number: str | None, store_country: str | None, organization_zone: str) -> str:
    """The zone of the number's country, else of the store's country, if the country has only one zone; else the
    organization's zone."""
    if phone_number is not None:
        zones = locate_number(phone_number).zones
        if len(zones) == 1:
            return zones[0]
    zones = zones_by_country().get(store_country or "", ())
    return zones[0] if len(zones) == 1 else organization_zone
