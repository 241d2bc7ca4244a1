from datetime import UTC, date, datetime, timedelta

import pytest

from regulars.stores.model import Address, StoreUpsert
from regulars.stores.upsert import upsert_stores
from regulars.texts.gate import BatchGate
from regulars.texts.number_location import locate_number
from regulars.texts.public_holidays import coming_holidays, find_closed_days, holidays_of, region_of
from regulars.texts.rates import SenderRates
from regulars.texts.send import _lock_due_texts
from regulars.texts.send_hours import next_opening
from regulars.texts.settings.change import looser_caps, looser_than_default
from regulars.texts.settings.model import Cap, OpenHours, SendHoursRule, default_rule

PARIS = "+33612345678"
BERLIN = "+491701234567"
ZURICH = "+41791234567"
NEW_YORK, LOS_ANGELES, HONOLULU = "+12125551234", "+14155550000", "+18085550000"
NO_ZONE = "+12005551234"
SATURDAY = 5


def opening(number: str, moment: str):
    country, zones, _ = locate_number(number)
    return next_opening(default_rule(country), country, zones, datetime.fromisoformat(moment).astimezone(UTC))


@pytest.mark.parametrize(
    ("number", "moment", "opens"),
    [
        # An ordinary Monday in Paris, before, within and after the hours.
        (PARIS, "2026-11-16T07:59:59+01:00", "2026-11-16T08:00+01:00"),
        (PARIS, "2026-11-16T12:00:00+01:00", "2026-11-16T12:00+01:00"),
        (PARIS, "2026-11-16T20:00:00+01:00", "2026-11-17T08:00+01:00"),
        # Sunday, and the Saturday before it after closing time.
        (PARIS, "2026-11-15T10:00:00+01:00", "2026-11-16T08:00+01:00"),
        (PARIS, "2026-11-14T20:30:00+01:00", "2026-11-16T08:00+01:00"),
        # Clocks go back on 25 October and forward on 29 March; eight o'clock stays eight o'clock.
        (PARIS, "2026-10-24T21:00:00+02:00", "2026-10-26T08:00+01:00"),
        (PARIS, "2026-03-28T21:00:00+01:00", "2026-03-30T08:00+02:00"),
        # Christmas; the day after is a holiday in Alsace only.
        (PARIS, "2026-12-25T10:00:00+01:00", "2026-12-26T08:00+01:00"),
        # Good Friday is a holiday in Alsace, Easter Monday everywhere.
        (PARIS, "2026-04-02T20:00:00+02:00", "2026-04-03T08:00+02:00"),
        (PARIS, "2026-04-05T12:00:00+02:00", "2026-04-07T08:00+02:00"),
        (BERLIN, "2026-04-03T12:00:00+02:00", "2026-04-04T08:00+02:00"),
        (BERLIN, "2026-12-24T20:00:00+01:00", "2026-12-28T08:00+01:00"),
        # Corpus Christi is a holiday in some states only: the number does not say in which one it is.
        (BERLIN, "2026-06-04T12:00:00+02:00", "2026-06-04T12:00+02:00"),
        (ZURICH, "2026-08-01T12:00:00+02:00", "2026-08-03T08:00+02:00"),
        # Good Friday is in no law of the whole country, and 24 of 26 cantons keep it.
        (ZURICH, "2026-04-03T12:00:00+02:00", "2026-04-04T08:00+02:00"),
        # Thanksgiving, and three area codes on an ordinary Monday.
        (NEW_YORK, "2026-11-26T12:00:00-05:00", "2026-11-27T10:00-05:00"),
        (NEW_YORK, "2026-11-16T09:00:00-05:00", "2026-11-16T10:00-05:00"),
        (LOS_ANGELES, "2026-11-16T09:00:00-05:00", "2026-11-16T10:00-08:00"),
        (HONOLULU, "2026-11-16T09:00:00-05:00", "2026-11-16T10:00-10:00"),
        (NEW_YORK, "2026-11-21T17:00:00-05:00", "2026-11-23T10:00-05:00"),
        # Somewhere in the United States: it opens when the last zone opens, in Hawaii.
        (NO_ZONE, "2026-11-16T09:00:00-05:00", "2026-11-16T10:00-10:00"),
    ],
)
def test_a_text_waits_for_the_next_opening_of_its_number(number, moment, opens):
    assert opening(number, moment).at == datetime.fromisoformat(opens)


def test_it_says_when_the_hours_end():
    assert opening(PARIS, "2026-11-16T12:00:00+01:00").closes_at == datetime.fromisoformat("2026-11-16T20:00+01:00")
    assert opening(NO_ZONE, "2026-11-16T15:30:00-05:00").closes_at == datetime.fromisoformat("2026-11-16T18:00-05:00")


def test_a_number_that_may_lie_in_zones_that_are_never_open_together_finds_no_opening():
    assert opening("+18005551234", "2026-11-16T12:00:00-05:00").at is None


def test_a_number_of_no_country_has_no_zone():
    assert locate_number("+881612345678") == (None, (), None)


def test_nothing_opens_after_96_hours():
    closed = SendHoursRule(days=(None,) * 6 + (OpenHours(480, 1200),))
    monday = datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert next_opening(closed, "FR", ("Europe/Paris",), monday).at is None
    assert next_opening(closed, "FR", ("Europe/Paris",), monday + timedelta(days=2)).at is not None


def working_days(country, region=None):
    return [day for day in holidays_of(country, 2026, region) if day.weekday() <= SATURDAY]


def test_the_days_of_single_towns_and_territories_close_no_country():
    assert {country: len(working_days(country)) for country in ("IT", "FR", "DE", "CH", "US")} == {
        "IT": 10,
        "FR": 10,
        "DE": 9,
        "CH": 7,
        "US": 12,
    }


def test_twelve_months_may_be_without_easter_or_have_it_twice():
    assert len(coming_holidays("FR", date(2026, 7, 1))) == 11
    assert "Easter Monday" not in {name for _, name in coming_holidays("FR", date(2027, 4, 1))}
    assert len(coming_holidays("FR", date(2026, 4, 6))) == 12


def test_the_days_of_the_french_operators_charter_stay_closed():
    days = (
        "2026-01-01", "2026-04-06", "2026-05-01", "2026-05-08", "2026-05-14", "2026-05-25", "2026-07-14", "2026-08-15",
        "2026-11-01", "2026-11-11", "2026-12-25",
    )  # fmt: skip
    for day in days:
        assert opening(PARIS, f"{day}T12:00:00+02:00").at.date().isoformat() > day


@pytest.mark.parametrize(
    ("address", "region", "day"),
    [
        ({"country_code": "FR", "postal_code": "67000"}, "6AE", "2026-04-03"),
        ({"country_code": "FR", "postal_code": "57000"}, "57", "2026-12-26"),
        ({"country_code": "DE", "postal_code": "80331", "administrative_area1": "Bayern"}, "BY", "2026-06-04"),
        ({"country_code": "IT", "postal_code": "20121", "administrative_area2": "MI"}, "MI", "2026-12-07"),
        ({"country_code": "CH", "postal_code": "8001", "administrative_area1": "Zurich"}, "ZH", "2026-12-26"),
    ],
)
def test_a_store_names_its_region_and_the_region_its_days(address, region, day):
    assert region_of(Address(address_line1="1", locality="x", **address)) == region
    country = address["country_code"]
    assert date.fromisoformat(day) in holidays_of(country, 2026, region)
    assert date.fromisoformat(day) not in holidays_of(country, 2026)


@pytest.mark.parametrize("country", ["FR", "DE", "ZZ"])
def test_a_store_whose_region_is_not_known_names_none(country):
    assert region_of(Address(address_line1="1", locality="x", country_code=country, postal_code="75002")) is None


def test_a_looser_rule_is_named():
    sunday = SendHoursRule(days=(OpenHours(420, 1260), *[OpenHours(480, 1200)] * 6), on_holidays=True)
    assert looser_than_default("FR", sunday) == [
        "Monday is open from 8:00 to 20:00 by default in FR.",
        "Sunday is closed by default in FR.",
        "No text is sent on public holidays by default in FR.",
    ]
    assert looser_than_default("FR", default_rule("FR")) == []


def test_a_looser_cap_is_named():
    assert looser_caps((Cap(1, 24), Cap(4, 720))) == []
    assert looser_caps((Cap(1, 24),)) == ["The default is at most 4 in 720 hours to one number."]
    assert len(looser_caps((Cap(3, 24), Cap(9, 720)))) == 2


def test_a_number_keeps_the_days_of_the_region_of_its_store_and_the_list_says_so_before(desk):
    address = Address(address_line1="1 rue des Orfèvres", locality="Strasbourg", country_code="FR", postal_code="67000")
    numbers = {PARIS: None, "+33612345679": "STRASBOURG", BERLIN: "STRASBOURG"}
    strasbourg = StoreUpsert(external_id="STRASBOURG", address=address)
    desk.do(lambda tx: upsert_stores(tx, desk.organization_id, [strasbourg]))
    for number, store in numbers.items():
        desk.opt_in(None, number, source="POINT_OF_SALE", store=store)
        desk.order(number=number)
    texting = desk.texting

    async def regions(tx):
        rates = await SenderRates.open(tx, desk.organization_id, texting)
        rows, consents, _ = await _lock_due_texts(
            tx, desk.organization_id, limit=10, lowest=2, rates=rates, is_on_hold=False
        )
        gate = await BatchGate.open(tx, desk.organization_id, consents.keys(), texting, consents)
        return {row.phone_number: gate._locate(row.phone_number, consents[row.number_hash]).region for row in rows}

    # A number of another country is not at home where it consented.
    assert desk.do(regions) == {PARIS: None, "+33612345679": "6AE", BERLIN: None}
    closed = desk.do(lambda tx: find_closed_days(tx, desk.organization_id, "FR", today=date(2026, 1, 1)))
    assert len(closed.everywhere) == 11
    assert [day.isoformat() for day, _ in closed.regions["Alsace"].closed] == ["2026-04-03", "2026-12-26"]
    assert closed.regions["Alsace"].opened == []


def test_a_text_waits_for_the_day_after_a_holiday_of_its_region():
    noon = datetime(2026, 4, 3, 10, tzinfo=UTC)
    place = locate_number(PARIS)
    for region, at in ((None, noon), ("6AE", datetime(2026, 4, 4, 6, tzinfo=UTC))):
        assert next_opening(default_rule("FR"), "FR", place.zones, noon, region=region).at == at
