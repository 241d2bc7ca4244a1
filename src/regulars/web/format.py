"""Format numbers, money and times by the user's locale and the organization's time zone."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from functools import cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from babel import Locale
from babel.core import UnknownLocaleError
from babel.dates import format_date, format_skeleton
from babel.numbers import format_currency, format_decimal, format_percent, get_currency_precision
from markupsafe import Markup

from regulars.kit.clock import format_timestamp, in_zone
from regulars.kit.time_zones import find_zone

# Shown where there is no value, and between two dates.
NOTHING: Final = "\N{EN DASH}"
MINUS: Final = "\N{MINUS SIGN}"
NO_BREAK: Final = "\N{NO-BREAK SPACE}"
# Overviews show amounts of this size and more without cents.
ROUND_FROM_CENTS: Final = 10_000_00
# Differences are estimates, and are shown without cents from this size on.
WHOLE_FROM_CENTS: Final = 100_00
# Lists show the weekday of dates in this many last days.
WEEKDAY_DAYS: Final = 14
LOCALES: Final = {
    "en-GB": "English (United Kingdom)",
    "en-US": "English (United States)",
    "fr-FR": "French (France)",
    "fr-CH": "French (Switzerland)",
    "fr-BE": "French (Belgium)",
    "de-DE": "German (Germany)",
    "de-CH": "German (Switzerland)",
    "de-AT": "German (Austria)",
    "it-IT": "Italian (Italy)",
    "es-ES": "Spanish (Spain)",
    "nl-NL": "Dutch (Netherlands)",
    "pt-PT": "Portuguese (Portugal)",
}
_PERCENT_STEP: Final = Decimal("0.001")
_SAMPLE: Final = Decimal("1234.56")


@cache
def _locale(tag: str) -> Locale:
    try:
        return Locale.parse(tag, sep="-")
    except (UnknownLocaleError, ValueError):
        return Locale.parse("en-GB", sep="-")


class _Pattern(NamedTuple):
    """What a locale writes before, between and after the digits of a number."""

    before: str
    group: str
    decimal: str
    after: str

    def fill(self, digits: str) -> str:
        """The number whose digits are written as in "1,234.56"."""
        return f"{self.before}{digits.translate({ord(','): self.group, ord('.'): self.decimal})}{self.after}"


@cache
def _find_pattern(locale_tag: str, currency: str | None) -> _Pattern:
    """Take the pattern from a number that Babel formats. Babel itself takes twenty times as long for each number, and
    a page has hundreds. All locales here group digits by three."""
    locale = _locale(locale_tag)
    if currency is None:
        sample = format_decimal(_SAMPLE, locale=locale)
    else:
        sample = format_currency(_SAMPLE, currency, locale=locale, currency_digits=False)
    before, _, rest = sample.partition("1")
    group, _, rest = rest.partition("234")
    decimal, _, after = rest.partition("56")
    # In English, Babel writes "CHF412.80": add a space after the currency code.
    return _Pattern(f"{before}{NO_BREAK}" if before and before == currency else before, group, decimal, after)


def country_name(code: str) -> str:
    """The English name of a country; the code itself if it has none."""
    return str(Locale("en").territories.get(code, code))


@dataclass(frozen=True, slots=True)
class Format:
    """Formats values for one user. The current year, today and "ago" are relative to `now`, the time of the request."""

    locale_tag: str
    time_zone: str
    now: datetime = field(default_factory=lambda: datetime.now(UTC), kw_only=True)

    @property
    def locale(self) -> Locale:
        return _locale(self.locale_tag)

    @property
    def zone(self) -> ZoneInfo:
        return find_zone(self.time_zone)

    def number(self, value: float | Decimal) -> str:
        if isinstance(value, int):
            return _signed(value < 0, _find_pattern(self.locale_tag, None).fill(f"{abs(value):,}"))
        exact = Decimal(str(value))
        return _signed(exact < 0, str(format_decimal(abs(exact), locale=self.locale)))

    def count(self, number: int, singular: str, plural: str | None = None, *, count_max: int | None = None) -> str:
        """A number with its noun, and with a verb if the noun has one: "1 reply", "2 replies", "1 text waits".

        A number above `count_max` is written as "100+", because rows were counted only up to `count_max`.
        """
        digits = self.number(number) if count_max is None or number <= count_max else f"{self.number(count_max)}+"
        return f"{digits} {singular if number == 1 else plural or f'{singular}s'}"

    def change(self, number: int, singular: str, plural: str | None = None) -> str:
        """Like `count` with a sign: "+2 opt-ins", "\N{MINUS SIGN}1 opt-out"; zero has no sign."""
        return f"{'+' if number > 0 else ''}{self.count(number, singular, plural)}"

    def money(self, cents: int, currency: str) -> str:
        """An amount with cents, or with as many decimals as its currency has."""
        amount = Decimal(abs(cents)) / 100
        return self._money(f"{amount:,.{get_currency_precision(currency)}f}", currency, is_negative=cents < 0)

    def amounts(self, by_currency: Mapping[str, Decimal]) -> str:
        """An amount with cents for each currency; empty if there is none."""
        return ", ".join(self.money(round(amount * 100), currency) for currency, amount in by_currency.items())

    def money_rounded(self, cents: int, currency: str) -> str:
        """An amount in an overview: without cents if it is 10,000 or more."""
        return self.money(cents, currency) if abs(cents) < ROUND_FROM_CENTS else self.money_whole(cents, currency)

    def money_whole(self, cents: float, currency: str) -> str:
        """An amount without cents."""
        whole = (Decimal(abs(cents)) / 100).quantize(Decimal(1))
        return self._money(f"{whole:,}", currency, is_negative=cents < 0 and whole > 0)

    def money_change(self, cents: float, currency: str) -> str:
        """The difference of two amounts, with its sign; without cents if it is 100 or more."""
        text = (
            self.money(round(cents), currency) if abs(cents) < WHOLE_FROM_CENTS else self.money_whole(cents, currency)
        )
        return f"+{text}" if cents > 0 else text

    def price(self, amount: Decimal, currency: str) -> str:
        """An amount with all its decimals, such as the price of one SMS part."""
        whole, _, decimals = f"{amount.normalize():,f}".partition(".")
        decimals = decimals.ljust(get_currency_precision(currency), "0")
        return self._money(f"{whole}.{decimals}" if decimals else whole, currency, is_negative=False)

    def monies(self, sums: Iterable[tuple[str, int]]) -> list[str]:
        """One amount per currency, the largest first; currencies are never added."""
        return [
            self.money(cents, currency) for currency, cents in sorted(sums, key=lambda pair: (-abs(pair[1]), pair[0]))
        ]

    def share(self, part: float, whole: float) -> str:
        """The part as a percentage of the whole. It is shown as 0 or 100 only if it is exactly that."""
        if not whole:
            return NOTHING
        exact = Decimal(part) / Decimal(whole)
        rounded = exact.quantize(_PERCENT_STEP)
        if rounded == 0 and exact != 0:
            return f"<{self._percent(_PERCENT_STEP)}"
        if rounded == 1 and exact != 1:
            rounded = exact.quantize(_PERCENT_STEP, ROUND_DOWN)
        return _signed(rounded < 0, self._percent(abs(rounded)))

    def aligned_share(self, part: float, whole: float) -> str:
        """Like `share`, always with one decimal, so that a table column aligns."""
        return self._with_decimal(self.share(part, whole))

    def aligned_number(self, value: float) -> str:
        """A number always with two decimals, so that a table column aligns."""
        return _signed(value < 0, str(format_decimal(abs(value), format="#,##0.00", locale=self.locale)))

    def delta(self, now: float, before: float) -> str:
        """The change from `before` to `now` in per cent; a dash if `before` is 0."""
        if before <= 0:
            return NOTHING
        change = (Decimal(now) / Decimal(before) - 1).quantize(_PERCENT_STEP)
        return f"{'+' if change > 0 else ''}{_signed(change < 0, self._percent(abs(change)))}"

    def aligned_delta(self, now: float, before: float) -> str:
        """Like `delta`, always with one decimal, so that a table column aligns."""
        return self._with_decimal(self.delta(now, before))

    def points(self, now: float, before: float) -> str:
        """The difference of two shares, in percentage points."""
        change = Decimal(str(round((now - before) * 100, 1)))
        return f"{'+' if change > 0 else ''}{self.number(change)} pts"

    def weekday(self, day: date) -> str:
        """A date with its weekday, and with its year unless that is the current year."""
        skeleton = "MMMEd" if day.year == self.today.year else "yMMMEd"
        return str(format_skeleton(skeleton, day, locale=self.locale))

    def period(self, first: date, last: date) -> str:
        """The first and the last day of a period; the year is written once if both have the same."""
        if first == last:
            return self.full_day(first)
        skeleton = "MMMd" if first.year == last.year else "yMMMd"
        return f"{format_skeleton(skeleton, first, locale=self.locale)} {NOTHING} {self.full_day(last)}"

    def month(self, day: date) -> str:
        return str(format_skeleton("yMMM", day, locale=self.locale))

    def day(self, value: datetime | date) -> str:
        """A date, with its year unless that is the current year."""
        local = self._local_day(value)
        if local.year == self.today.year:
            return str(format_skeleton("MMMd", local, locale=self.locale))
        return self.full_day(local)

    def full_day(self, value: datetime | date) -> str:
        return str(format_date(self._local_day(value), "medium", locale=self.locale))

    def list_day(self, value: datetime | date) -> str:
        """A date in a list: with its weekday if it is one of the last 14 days."""
        local = self._local_day(value)
        if timedelta(0) <= self.today - local < timedelta(days=WEEKDAY_DAYS):
            return str(format_skeleton("MMMEd", local, locale=self.locale))
        return self.day(local)

    def span(self, newest: datetime, oldest: datetime) -> str:
        """The days of a list page: `5 Nov to 14 Nov`, or one day."""
        first, last = self.day(oldest), self.day(newest)
        return first if first == last else f"{first} to {last}"

    def clock(self, moment: datetime, *, seconds: bool = False) -> str:
        return in_zone(moment, self.zone).strftime("%H:%M:%S" if seconds else "%H:%M")

    def moment(self, moment: datetime, *, seconds: bool = False) -> str:
        return f"{self.day(moment)}, {self.clock(moment, seconds=seconds)}"

    def full_moment(self, moment: datetime, *, seconds: bool = False) -> str:
        return f"{self.full_day(moment)}, {self.clock(moment, seconds=seconds)}"

    def since(self, moment: datetime) -> str:
        """A time for the word "since" before it: the time of day, with the date unless it is today."""
        return self.clock(moment) if self._local_day(moment) == self.today else self.moment(moment)

    def ago(self, moment: datetime) -> str:
        """The time that has passed, in the largest unit, such as "3 h ago"; pages show the exact time beside it."""
        seconds = max(0, int((self.now - moment).total_seconds()))
        for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
            if seconds >= length:
                return f"{seconds // length} {unit} ago"
        return f"{seconds} s ago"

    def time_tag(self, moment: datetime, text: str | None = None, *, seconds: bool = False) -> Markup:
        """A `<time>` element with the time in UTC as its attribute."""
        in_utc = format_timestamp(moment.astimezone(UTC))
        return Markup('<time datetime="{}">{}</time>').format(in_utc, text or self.moment(moment, seconds=seconds))

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()

    def _local_day(self, value: datetime | date) -> date:
        return in_zone(value, self.zone).date() if isinstance(value, datetime) else value

    def _money(self, digits: str, currency: str, *, is_negative: bool) -> str:
        return _signed(is_negative, _find_pattern(self.locale_tag, currency).fill(digits))

    def _with_decimal(self, percent: str) -> str:
        """A percentage with one decimal; a dash stays a dash."""
        decimal: str = self.locale.number_symbols["latn"]["decimal"]
        return percent if decimal in percent else re.sub(r"(\d)(?=\D*\Z)", rf"\1{decimal}0", percent)

    def _percent(self, value: Decimal) -> str:
        return str(format_percent(value, locale=self.locale, decimal_quantization=False))


def short_id(identifier: str, *, head: int = 9, tail: int = 4) -> str:
    """The id with "…" instead of its middle, if it is long. The copy button copies the full id."""
    return identifier if len(identifier) <= head + tail + 1 else f"{identifier[:head]}…{identifier[-tail:]}"


def short_external_id(identifier: str) -> str:
    """The caller's id, shortened for a list: users recognize its beginning, and its end distinguishes it."""
    return short_id(identifier, head=20, tail=8)


def _signed(is_negative: bool, text: str) -> str:
    return f"{MINUS}{text}" if is_negative else text
