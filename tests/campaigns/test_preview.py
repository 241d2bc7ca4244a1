"""The text as real members of the audience would get it."""

import pytest
from tests.support.gateway import ALWAYS

from regulars.campaigns.preview import PreviewedCustomers
from regulars.texts.settings.model import SmsSettings

TEXT = {"variants": [{"text": "Hello {{ profile.first_name | default('you') }} from {{ brand }}"}]}
PEOPLE = {
    "Al": ("+33612345001", "Al"),
    "Maximiliane": ("+33612345002", "Maximiliane"),
    "Beat": ("+41791234501", "Beat"),
    "nameless": ("+33612345003", None),
}


@pytest.fixture
def shop(desk):
    desk.settings(SmsSettings(brand="Shop", rules={"FR": ALWAYS, "CH": ALWAYS}))
    for name, (phone, first_name) in PEOPLE.items():
        desk.person(name, phone, first_name)
    desk.customer("asked never", first_name="Wolfeschlegelsteinhausen")
    desk.drain()
    desk.build()
    return desk


def test_the_longest_text_and_one_without_a_first_name_are_found(shop):
    [longest] = shop.preview(PreviewedCustomers.LONGEST, **TEXT)
    assert (longest.profile_id, longest.first_name) == (shop.people["Maximiliane"], "Maximiliane")
    assert longest.body.startswith("Hello Maximiliane from Shop")
    assert (longest.measured.parts, longest.reason) == (1, None)
    [nameless] = shop.preview(PreviewedCustomers.WITHOUT_FIRST_NAME, **TEXT)
    assert (nameless.profile_id, nameless.body[:9]) == (shop.people["nameless"], "Hello you")
    [skipped] = shop.preview(
        PreviewedCustomers.WITHOUT_FIRST_NAME, variants=[{"text": "Hello {{ profile.first_name }}"}]
    )
    assert (skipped.body, skipped.measured, skipped.reason) == ("", None, "missing_value: profile.first_name")


def test_one_customer_of_each_country_and_a_random_one_are_found(shop):
    assert [it.country for it in shop.preview(PreviewedCustomers.COUNTRIES, **TEXT)] == ["FR", "CH"]
    [anyone] = shop.preview(PreviewedCustomers.RANDOM, **TEXT)
    assert anyone.profile_id in shop.people.values()


def test_values_of_a_customer_are_hidden_where_the_user_may_not_see_them(shop):
    [longest] = shop.preview(PreviewedCustomers.LONGEST, hidden="•••", **TEXT)
    assert (longest.first_name, longest.last_name) == ("•••", None)
    assert longest.body.startswith("Hello ••• from Shop")
    # The parts are those of the real text.
    assert (longest.measured.encoding.value, longest.profile_id) == ("GSM-7", shop.people["Maximiliane"])


def test_no_customer_is_found_where_there_is_none(shop):
    empty = shop.segment({"type": "created", "when": {"comparison": "before", "date": "1999-01-01"}}, name="Nobody")
    for which in PreviewedCustomers:
        assert shop.preview(which, segment=empty, **TEXT) == []
