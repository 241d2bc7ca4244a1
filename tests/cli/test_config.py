import json

from regulars.kit.settings import declarations


def test_it_shows_every_setting_with_its_source(command, tmp_path):
    (tmp_path / "regulars.toml").write_text("workers = 2\n")
    shown = command("config", "--json", REGULARS_PORT="8099", DATABASE_URL="postgresql://u:hunter2@h/d")
    by_name = {each["name"]: each for each in shown.data}
    assert list(by_name) == list(declarations())
    assert (by_name["port"]["value"], by_name["port"]["source"]) == ("8099", "REGULARS_PORT")
    assert by_name["workers"]["source"].endswith("regulars.toml")
    assert by_name["host"]["source"] == "default"
    assert by_name["database_url"]["value"] == "postgresql://u:***@h/d"
    assert by_name["database_url"]["source"] == "DATABASE_URL"


def test_the_readable_form_has_every_name_and_meaning(command):
    shown = command("config")
    assert shown.code == 0
    for name, declaration in declarations().items():
        assert f"REGULARS_{name.upper()} = " in shown.out
        assert declaration.meaning in shown.out


def test_a_misspelt_setting_stops_every_command(command):
    sentence = command("config", REGULARS_WORKER="2").complains(code=2)
    assert sentence == "regulars: REGULARS_WORKER is not a setting; did you mean REGULARS_WORKERS?"


def test_a_mistake_in_the_settings_of_a_service_is_a_line_of_its_log(command):
    (line,) = command("worker", REGULARS_WORKER="2").err.splitlines()
    assert json.loads(line)["reason"] == "REGULARS_WORKER is not a setting; did you mean REGULARS_WORKERS?"


def test_help_lists_the_commands(command):
    shown = command("--help")
    assert shown.code == 0
    for name in ("worker", "migrate", "doctor", "backup", "restore", "organization", "key", "config"):
        assert name in shown.out


def test_an_unknown_command_is_a_usage_error(command):
    assert command("srve").code == 2
