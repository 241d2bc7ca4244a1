"""When a server that we called wants a retry, however it spells that."""

from datetime import UTC, datetime, timedelta

import pytest

from regulars.kit.http_client import read_http_date, read_retry_after

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
A_YEAR = timedelta(days=366)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("7", timedelta(seconds=7)),
        ("0", timedelta(0)),
        ("999999999", A_YEAR),
        ("9" * 400, A_YEAR),
        ("9" * 5000, A_YEAR),
        ("-5", None),
        ("1.5", None),
        ("\u0663", None),
        ("\u00b2", None),
        ("soon", None),
        ("", None),
        ("Mon, 02 Mar 2026 09:40:00 GMT", timedelta(minutes=10)),
        ("Mon, 02 Mar 2026 10:40:00 +0100", timedelta(minutes=10)),
        ("Mon, 02 Mar 2026 09:00:00 GMT", timedelta(0)),
        ("Mon, 02 Mar 9999 09:00:00 GMT", A_YEAR),
        ("Mon, 02 Mar 99999 09:00:00 GMT", None),
        ("Mon, 02 Mar 10000000000000000000000 09:00:00 GMT", None),
        ("Mon, 02 Mar 2026 09:40:00 +9999", None),
    ],
)
def test_it_is_read_or_says_nothing(text, expected):
    assert read_retry_after(text, now=NOW) == expected


def test_a_date_without_a_zone_is_of_utc():
    assert read_http_date("Mon, 02 Mar 2026 09:30:00") == NOW
    assert read_http_date(None) is None
