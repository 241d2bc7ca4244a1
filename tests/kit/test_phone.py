"""What needs no reading comes out of the careful reading as it is."""

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regulars.kit.phone import is_e164

EXAMPLES = sorted(
    phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    for number in map(phonenumbers.example_number, phonenumbers.SUPPORTED_REGIONS)
    if number is not None
)


def read(text: str) -> str | None:
    number = phonenumbers.parse(text, None)
    reason = phonenumbers.is_possible_number_with_reason(number)
    if number.extension or reason != phonenumbers.ValidationResult.IS_POSSIBLE:
        return None
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164))


@given(
    code=st.sampled_from(sorted(phonenumbers.COUNTRY_CODE_TO_REGION_CODE)),
    national=st.from_regex(r"[0-9]{3,13}", fullmatch=True),
)
def test_a_number_that_needs_no_reading_is_read_as_it_is(code, national):
    text = f"+{code}{national}"
    assert not is_e164(text) or read(text) == text


def test_the_usual_number_of_nearly_every_country_needs_no_reading():
    plain = [text for text in EXAMPLES if is_e164(text)]
    assert [read(text) for text in plain] == plain
    assert len(plain) > 0.95 * len(EXAMPLES)


@pytest.mark.parametrize(
    "text",
    ["", "+", "33612345678", "0612345678", "+3361234567", "+336123456789", "+33 6 12 34 56 78", "+0612345678",
     "+330612345678", "+999612345678", "+3361234567\u0668", "+33612345678\n", "+390212345678", "+541123456789"],
)  # fmt: skip
def test_anything_else_is_left_to_the_careful_reading(text):
    assert not is_e164(text)
