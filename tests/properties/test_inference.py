"""Inference and interpretation are total, stable, and agree with each other."""

from datetime import date, datetime
from decimal import Decimal

from hypothesis import example, given
from hypothesis import strategies as st

from regulars.catalog.model import AttributeType, has_leading_zeros, infer_type, interpret

INFERABLE = {AttributeType.TEXT, AttributeType.NUMBER, AttributeType.BOOLEAN, AttributeType.DATE}

near_misses = st.one_of(
    st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,10})?\s?"),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,12})?(Z|[+-][0-9]{2}:[0-9]{2}))?"),
    st.sampled_from(["true", "false", "True", "FALSE", "null", "NaN", "Infinity", "-0", "0x10"]),
)
values = st.text(max_size=2048) | near_misses


@given(values)
@example("0001-01-01T00:00:00+23:59")
@example("9999-12-31T23:59:59-23:59")
@example("-" + "9" * 2047)
def test_every_value_has_a_type_and_always_the_same_one(value: str) -> None:
    inferred = infer_type(value)
    assert inferred in INFERABLE
    assert infer_type(value) is inferred


@given(st.sampled_from(list(AttributeType)), values, st.lists(st.text(max_size=5), max_size=3).map(tuple))
def test_no_type_ever_fails_on_a_value(declared: AttributeType, value: str, allowed: tuple[str, ...]) -> None:
    read = interpret(declared, value, allowed_values=allowed)
    assert read is None or isinstance(read, (str, Decimal, bool, datetime))


@given(values)
def test_text_means_that_no_other_inferable_type_could_read_it(value: str) -> None:
    # With spaces around it a value is inferred as text, although the types ignore them when they read.
    value = value.strip()
    readers = [declared for declared in INFERABLE - {AttributeType.TEXT} if interpret(declared, value) is not None]
    expected = [] if infer_type(value) is AttributeType.TEXT else [infer_type(value)]
    assert readers == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12))
def test_a_number_in_string_form_is_read_back_equal(number: Decimal) -> None:
    assert infer_type(f"{number:f}") is AttributeType.NUMBER
    assert interpret(AttributeType.NUMBER, f"{number:f}") == number


@given(st.dates())
def test_a_date_is_read_back_equal(day: date) -> None:
    assert infer_type(day.isoformat()) is AttributeType.DATE
    read = interpret(AttributeType.DATE, day.isoformat())
    # A day, and no moment of it.
    assert type(read) is date
    assert read == day


@given(values)
def test_only_a_number_can_look_like_a_code(value: str) -> None:
    assert not has_leading_zeros(value) or infer_type(value) is AttributeType.NUMBER
