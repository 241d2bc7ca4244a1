"""Convert the text of a cell to a value of the API: decimal amounts to cents, and local times or dates such as
31/12/2026 to timestamps.

A cell that cannot be converted stays text, which the rules of the API then refuse.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo

from regulars.kit.errors import ApiError, invalid

Amounts = Literal["cents", "decimal"]

# A number in the syntax of JSON.
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
# A sign, and digits with dots, commas, spaces or apostrophes; digits in groups of three; a date in two orders; a time.
_SIGNED: Final = re.compile(r"(?P<sign>[-+\u2212]?)(?P<digits>[0-9][0-9.,'\u2019\u00a0\u202f ]*)")
_GROUPS: Final = re.compile(r"[0-9]{1,3}(?:([.,'\u2019\u00a0\u202f ])[0-9]{3})(?:\1[0-9]{3})*")
_ISO: Final = re.compile(r"(?P<y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})(?:[T ](?P<t>[0-9:.]+))?")
_DAY_FIRST: Final = re.compile(r"(?P<d>[0-9]{1,2})([/.-])(?P<m>[0-9]{1,2})\2(?P<y>[0-9]{4})(?:[T ]+(?P<t>[0-9:.]+))?")
# A long number as spreadsheets write it in a CSV file if its column is not formatted as text.
_SHORTENED: Final = re.compile(r"\+?[0-9](?:[.,][0-9]+)?E\+[0-9]{2}")
_TIME: Final = re.compile(r"(?P<h>[0-9]{1,2}):(?P<min>[0-9]{2})(?::(?P<s>[0-9]{2})(?:\.(?P<f>[0-9]{1,6})[0-9]*)?)?")
DECIMALS_MAX: Final = 2
GROUP_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How a file writes amounts and times."""

    amounts: Amounts = "cents"
    timezone: ZoneInfo | None = None

    def number(self, text: str) -> str:
        """Return the quantity; if amounts are decimal, a decimal comma becomes a dot."""
        if self.amounts == "decimal" and re.fullmatch(r"-?[0-9]+,[0-9]+", text):
            text = text.replace(",", ".")
        return text

    def cents(self, text: str, *, field: str) -> str | ApiError:
        if self.amounts == "cents":
            return text
        cents = read_decimal(text, field=field)
        if isinstance(cents, ApiError) or NUMBER.fullmatch(cents):
            return cents
        return invalid(field, "FORMAT", f"'{text}' is not an amount: write 89,00 or 1 234,50, without a currency.")

    def timestamp(self, text: str, *, field: str) -> str | ApiError:
        return text if self.timezone is None else read_local_time(text, self.timezone, field=field)


def read_id(text: str, *, field: str) -> str | ApiError:
    """Refuse `4,71E+12`, whose lost digits would give several customers or tickets the same id."""
    if _SHORTENED.fullmatch(text):
        return invalid(
            field,
            "FORMAT",
            f"'{text}' is a number that a spreadsheet shortened: format its column as text, and save the file again.",
        )
    return text


def read_decimal(text: str, *, field: str) -> str | ApiError:
    """Convert `89,00`, `89.00`, `1 234,50` or `1.234,50` to cents; return an error for an ambiguous amount."""
    match = _SIGNED.fullmatch(text.strip())
    if match is None:
        return text
    sign, digits = "-" if match["sign"] in {"-", "\u2212"} else "", match["digits"].strip()
    integer, mark, decimals = _split_decimals(digits)
    if mark and len(decimals) > DECIMALS_MAX:
        if len(decimals) == GROUP_DIGITS and integer.isdigit():
            return invalid(field, "AMBIGUOUS", f"'{text}' may be thousands or decimals: write two decimals.")
        return invalid(field, "FORMAT", f"'{text}' has more than two decimals.")
    if not (integer.isdigit() or _GROUPS.fullmatch(integer)):
        return text
    units = re.sub(r"[^0-9]", "", integer)
    return sign + ((units + decimals.ljust(DECIMALS_MAX, "0")).lstrip("0") or "0")


def _split_decimals(digits: str) -> tuple[str, str, str]:
    """Split digits at the decimal mark, which is the last dot or comma; return the digits before it, the mark, and the
    digits after it. If that character occurs twice, it separates thousands, and there is no decimal mark."""
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0 or digits.count(digits[last]) > 1:
        return digits, "", ""
    return digits[:last], digits[last], digits[last + 1 :]


def read_local_time(text: str, timezone: ZoneInfo, *, field: str) -> str | ApiError:
    """Add the UTC offset of the time zone to a local time; a date alone means midnight."""
    day = _ISO.fullmatch(text.strip()) or _DAY_FIRST.fullmatch(text.strip())
    if day is None:
        return text
    clock = _TIME.fullmatch(day["t"] or "00:00")
    if clock is None:
        return text
    micros = (clock["f"] or "").ljust(6, "0")
    try:
        local = datetime(  # noqa: DTZ001  # the zone is set below, where its clock changes are handled
            int(day["y"]),
            int(day["m"]),
            int(day["d"]),
            int(clock["h"]),
            int(clock["min"]),
            int(clock["s"] or 0),
            int(micros),
        )
    except ValueError:
        return invalid(field, "FORMAT", f"'{text}' is not a date: the day comes before the month.")
    # When clocks are set back, an hour occurs twice, and its first occurrence is used. When they are set forward, the
    # times of an hour do not exist.
    aware = local.replace(tzinfo=timezone)
    if aware.astimezone(UTC).astimezone(timezone).replace(tzinfo=None) != local:
        return invalid(field, "FORMAT", f"'{text}' does not exist in {timezone.key}: the clock was set forward.")
    return aware.isoformat(timespec="milliseconds")
