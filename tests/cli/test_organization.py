import re

import psycopg


def test_creating_an_organization_prints_its_id_and_a_taken_name_is_refused(regulars):
    first = regulars("organization", "create", "Shop & Söhne")
    assert first.code == 0
    assert first.out.startswith("org_")
    assert len(first.out.splitlines()) == 1
    again = regulars("organization", "create", "Shop & Söhne")
    assert "Another organization is named 'Shop & Söhne'" in again.complains(code=1)
    assert again.out == ""


def test_the_demo_fills_no_organization_that_is_not_a_demo(regulars):
    regulars("organization", "create", "Shop")
    for force in ((), ("--force",)):
        ran = regulars("demo", "-o", "Shop", "--sales", "20", *force)
        assert "The organization Shop is not a demo" in ran.complains(code=1)


def test_the_list_shows_every_organization(regulars):
    one = regulars("organization", "create", "One", "--json").data
    regulars("organization", "create", "Two")
    listed = regulars("organization", "list", "--json").data
    assert [each["name"] for each in listed] == ["One", "Two"]
    assert listed[0]["id"] == one["id"]
    assert "Two" in regulars("organization", "list").out


def test_a_name_that_is_hard_to_type_again_is_refused_and_none_is_read_as_markup(regulars):
    for name in ("", " ", " Shop", "Shop\n", "a\tb", "x" * 256):
        regulars("organization", "create", name).complains(code=2)
    regulars("organization", "create", "[red]Shop[/red]")
    assert "[red]Shop[/red]" in regulars("organization", "list").out


def test_an_unmigrated_database_says_what_to_do(command, empty_database_url):
    sentence = command("organization", "list", DATABASE_URL=empty_database_url).complains(code=3)
    assert "regulars migrate" in sentence
    assert len(sentence) < 200


def test_migrate_brings_an_empty_database_up_to_date(command, empty_database_url):
    assert re.search(r"Applied \d+ migrations, the last", command("migrate", DATABASE_URL=empty_database_url).err)
    assert "up to date" in command("migrate", DATABASE_URL=empty_database_url).err
    assert command("organization", "list", "--json", DATABASE_URL=empty_database_url).data == []


def test_an_unreachable_database_is_one_sentence_without_its_password(command):
    sentence = command("organization", "list", DATABASE_URL="postgresql://user:hunter2@127.0.0.1:1/x").complains(code=3)
    assert "cannot be reached" in sentence
    assert "hunter2" not in sentence


def test_a_renamed_organization_keeps_its_id_and_its_keys(regulars):
    made = regulars("organization", "create", "Shp", "--json").data
    regulars("key", "create", "--organization", "Shp")
    assert regulars("organization", "rename", "Shp", "Shop").code == 0
    (renamed,) = regulars("organization", "list", "--json").data
    assert (renamed["id"], renamed["name"]) == (made["id"], "Shop")
    assert len(regulars("key", "list", "--organization", "Shop", "--json").data) == 1
    assert "no organization named 'Shp'" in regulars("organization", "rename", "Shp", "x").complains(code=1)


def test_a_name_that_is_taken_or_malformed_is_no_new_name(regulars):
    for name in ("One", "Two"):
        regulars("organization", "create", name)
    assert "Another organization" in regulars("organization", "rename", "One", "Two").complains(code=1)
    regulars("organization", "rename", "One", " ").complains(code=2)
    assert regulars("organization", "rename", "One", "One").code == 0


def test_only_a_locale_that_pages_know_is_set(regulars, database_url):
    regulars("organization", "create", "Shop")
    assert regulars("organization", "set", "Shop", "--locale", "fr-CH").code == 0
    assert "is not one of the locales" in regulars("organization", "set", "Shop", "--locale", "fr-ZZ").complains(code=2)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT locale FROM organizations").fetchone() == ("fr-CH",)


def test_the_default_country_is_set_and_taken_back(regulars, database_url):
    regulars("organization", "create", "Shop")
    for given, stored in (("fr", "FR"), ("none", None)):
        assert regulars("organization", "set", "Shop", "--default-country", given).code == 0
        with psycopg.connect(database_url) as connection:
            assert connection.execute("SELECT default_country FROM organizations").fetchone() == (stored,)
    assert "country code" in regulars("organization", "set", "Shop", "--default-country", "XX").complains(code=2)


def test_a_time_zone_that_the_country_does_not_have_is_refused(regulars):
    regulars("organization", "create", "Zoned")
    refused = regulars("organization", "set", "Zoned", "--default-country", "FR", "--time-zone", "America/New_York")
    assert "FR does not have the time zone America/New_York" in refused.complains(code=2)
    for zone in ("UTC", "Europe/Paris"):
        assert regulars("organization", "set", "Zoned", "--default-country", "FR", "--time-zone", zone).code == 0
