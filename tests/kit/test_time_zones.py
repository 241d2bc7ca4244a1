import pytest

from regulars.kit.time_zones import country_of, default_zone, find_zone, has_zone, shows_utc, time_zones

YEAR = 2026


@pytest.mark.parametrize(("name", "key"), [("Europe/Paris", "Europe/Paris"), ("Mars/Olympus", "UTC"), ("../x", "UTC")])
def test_a_time_zone_that_this_machine_lacks_becomes_utc(name, key):
    assert find_zone(name).key == key


@pytest.mark.parametrize(
    ("country", "zone"),
    # All clocks of Germany show one time, although it has two zones; those of Spain and Australia do not.
    [("FR", "Europe/Paris"), ("DE", "Europe/Berlin"), ("ES", None), ("AU", None), ("XK", None), ("", None)],
)
def test_a_country_whose_clocks_show_one_time_has_a_zone(country, zone):
    assert default_zone(country, year=YEAR) == zone


@pytest.mark.parametrize(
    ("zone", "country"),
    [
        ("Asia/Kolkata", "IN"),
        ("Asia/Calcutta", "IN"),
        ("US/Eastern", "US"),
        ("Africa/Asmera", "ER"),
        ("UTC", None),
        ("Mars/Olympus", None),
    ],
)
def test_a_zone_names_its_country_also_by_an_old_name(zone, country):
    assert country_of(zone) == country


def test_a_country_has_its_own_zones_only():
    assert has_zone("IN", "Asia/Calcutta")
    assert not has_zone("FR", "America/New_York")
    assert has_zone("XK", "Europe/Belgrade"), "the table does not have the country"


@pytest.mark.parametrize(("country", "keeps"), [("IS", True), ("PT", False), ("GB", False), ("FR", False)])
def test_some_countries_keep_utc_all_year(country, keeps):
    assert shows_utc(country, year=YEAR) is keeps


def test_utc_and_full_names_can_be_chosen():
    assert {"UTC", "Europe/Paris"} < set(time_zones())
    assert not {"EST", "Etc/GMT"} & set(time_zones())
