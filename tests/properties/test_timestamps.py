"""Time on the wire: what goes in comes out in UTC, truncated to the millisecond, and nothing else is let in."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from regulars.kit.clock import format_timestamp, parse_timestamp

moments = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001  # hypothesis takes naive bounds and adds the zone
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001  # the same
    timezones=st.just(UTC),
)
offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(moments, offsets)
def test_an_offset_changes_the_spelling_and_not_the_moment(moment: datetime, zone: timezone) -> None:
    read = parse_timestamp(moment.astimezone(zone).isoformat(timespec="microseconds"))
    assert read == moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    assert read.utcoffset() == timedelta(0)


@given(st.text() | st.from_regex(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d*)?([Zz]|[+-]\d{2}:?\d{2})?"))
def test_any_text_is_read_or_refused_with_value_error(text: str) -> None:
    try:
        read = parse_timestamp(text)
    except ValueError:
        return
    assert len(format_timestamp(read)) == len("2024-01-01T00:00:00.000Z")
