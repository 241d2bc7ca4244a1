"""When people buy: over the year, over the week, over the day. Pure functions of the calendar."""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import accumulate

DAYS = 730
# January and July are the months of sales, December is Christmas, August is quiet.
MONTH_WEIGHTS = (1.15, 0.80, 0.90, 0.95, 1.00, 1.05, 1.10, 0.70, 1.00, 1.05, 1.20, 1.75)
# Monday to Sunday.
WEEKDAY_WEIGHTS = (0.75, 0.80, 0.95, 0.90, 1.20, 1.70, 0.70)
# A chain that lives grows a little every day: by about a fifth over the two years.
GROWTH = 0.2
SALE_MONTHS = frozenset({1, 7})
HOUR_WEIGHTS = {10: 5, 11: 8, 12: 12, 13: 11, 14: 8, 15: 9, 16: 11, 17: 14, 18: 14, 19: 8}
OPENING_MINUTES = tuple(minute for hour in HOUR_WEIGHTS for minute in range(hour * 60, hour * 60 + 60))
OPENING_WEIGHTS = tuple(accumulate(HOUR_WEIGHTS[minute // 60] for minute in OPENING_MINUTES))


def days_until(last: date) -> list[date]:
    """The days of the story, the last one included."""
    return [last - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]


def is_on_sale(day: date) -> bool:
    return day.month in SALE_MONTHS


def tickets_per_day(days: Sequence[date], total: int) -> list[int]:
    """Share the total out by the weight of each day, without losing any to rounding."""
    weights = [day_weight(day, position / len(days)) for position, day in enumerate(days)]
    whole = sum(weights)
    ends = [round(total * weight / whole) for weight in accumulate(weights)]
    return [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def day_weight(day: date, progress: float) -> float:
    return MONTH_WEIGHTS[day.month - 1] * WEEKDAY_WEIGHTS[day.weekday()] * (1 + GROWTH * progress)
