"""Rules of profiles that need no database."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from regulars.kit.errors import ValidationError
from regulars.profiles.model import Phone, ProfileUpsert, apply, check_attributes, merge, new_profile, read_phone

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("sent", "country", "number"),
    [
        ("+33612345678", None, "+33612345678"),
        ("+33 6 12 34 56 78", None, "+33612345678"),
        ("0033 6.12.34.56.78", None, "+33612345678"),
        ("  +33612345678 ", None, "+33612345678"),
        ("+33\u00a06\u202f12345678", None, "+33612345678"),
        ("06 12 34 56 78", "FR", "+33612345678"),
        ("0041446681800", "FR", "+41446681800"),
        ("(415) 555-2671", "US", "+14155552671"),
    ],
)
def test_it_reads_a_number_with_a_plus_two_zeros_or_the_default_country(sent, country, number):
    assert read_phone(sent, default_country=country) == Phone(number, reachable=True)


@pytest.mark.parametrize("country", [None, "FR", "US"])
@pytest.mark.parametrize(
    "sent",
    ["", " ", "12", "+", "+12", "00", "call me", "1" * 40, "+33612345678 ext. 5", "+1 800 FLOWERS", "tel:+33612345678", "+999123456789", "\U0001f4de" * 1024, "+" * 1024],
)  # fmt: skip
def test_it_keeps_what_it_cannot_read_exactly_as_sent(sent, country):
    assert read_phone(sent, default_country=country) == Phone(sent, reachable=False)


def test_a_national_number_needs_a_default_country():
    assert read_phone("0612345678", default_country=None) == Phone("0612345678", reachable=False)


def test_an_upsert_that_changes_nothing_gives_the_very_same_profile():
    upsert = ProfileUpsert(
        external_id="a", phone=Phone("+33612345678", reachable=True), attributes={"x": "1", "y": None}
    )
    profile = new_profile(upsert, identifier=uuid4(), now=NOW)
    assert apply(upsert, profile, now=LATER) is profile


def test_the_time_of_a_change_never_runs_backwards():
    profile = new_profile(ProfileUpsert(external_id="a"), identifier=uuid4(), now=LATER)
    assert apply(ProfileUpsert(external_id="a", first_name="Ada"), profile, now=NOW).updated_at == LATER


def test_the_limit_of_attributes_is_counted_after_the_merge():
    full = {f"k{number}": "v" for number in range(500)}
    with pytest.raises(ValidationError):
        merge(full, {"one_more": "v"})
    assert len(merge(full, {"k0": None, "one_more": "v"})) == 500


def test_it_refuses_more_attributes_than_any_profile_could_take():
    with pytest.raises(ValidationError):
        check_attributes({f"k{number}": "v" for number in range(501)})


def test_it_accepts_attributes_at_their_limits():
    check_attributes({"\U0001f9e3" * 128: "v" * 2048})
    check_attributes({f"k{number}": None for number in range(501)})
