import dataclasses
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from regulars.kit import settings
from regulars.kit.settings import SettingsError, describe, load


@pytest.fixture(autouse=True)
def _no_settings_file_nearby(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def nowhere(tmp_path):
    """A data folder without a settings file."""
    return {"REGULARS_DATA_DIR": str(tmp_path / "data")}


def test_defaults_are_those_of_a_local_service(nowhere):
    found = load(nowhere)
    assert (found.host, found.port, found.workers) == ("127.0.0.1", 8080, 1)
    assert (found.rate_limit_per_s, found.rate_limit_burst) == (1000, 2000)
    assert found.occurred_at_tolerance_s == 30
    assert found.lock_timeout_ms == 500
    assert found.is_embedded
    assert found.own_url == "http://127.0.0.1:8080"


def test_the_object_is_frozen(nowhere):
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(nowhere).port = 1  # type: ignore[misc]  # the point of the test


def test_the_environment_wins_over_the_file(nowhere, tmp_path):
    file = tmp_path / "other.toml"
    file.write_text('port = 9000\nhost = "0.0.0.0"\n')
    found = load({**nowhere, "REGULARS_PORT": "9001"}, file)
    assert (found.port, found.host) == (9001, "0.0.0.0")  # noqa: S104  # a value, nothing listens
    assert found.sources["port"] == "REGULARS_PORT"
    assert found.sources["host"] == str(file)


def test_a_file_in_the_working_folder_is_found(nowhere, tmp_path):
    (tmp_path / "regulars.toml").write_text("workers = 3\n")
    assert load(nowhere).workers == 3


def test_a_file_in_the_data_folder_is_found(nowhere, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "regulars.toml").write_text("workers = 4\n")
    assert load(nowhere).workers == 4


def test_a_named_file_must_exist(nowhere, tmp_path):
    with pytest.raises(SettingsError, match=r"does not exist\.$"):
        load({**nowhere, "REGULARS_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("variable", "sentence"),
    [
        ("REGULARS_PROT", r"^REGULARS_PROT is not a setting; did you mean REGULARS_PORT\?$"),
        ("REGULARS_QQQQQQQQQQ", "`regulars config` lists them all"),
    ],
)
def test_an_unknown_variable_suggests_the_nearest_name_or_the_list(nowhere, variable, sentence):
    with pytest.raises(SettingsError, match=sentence):
        load({**nowhere, variable: "1"})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("wrokers = 2\n", r"'wrokers' .* did you mean workers\?$"),
        ("port = = 1\n", "cannot be read"),
        # A boolean is no number.
        ("workers = true\n", "must be a whole number"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_sentence(nowhere, tmp_path, content, sentence):
    (tmp_path / "regulars.toml").write_text(content)
    with pytest.raises(SettingsError, match=sentence):
        load(nowhere)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("PORT", "80.5"),
        ("PORT", "eighty"),
        ("PORT", "٨٠"),
        ("WORKERS", "0"),
        ("OCCURRED_AT_TOLERANCE_S", "301"),
        ("LOCK_TIMEOUT_MS", "0"),
        ("LOG_FORMAT", "xml"),
        ("WEBHOOK_ALLOW", "intranet"),
        ("PUBLIC_URL", "regulars.example.com"),
        ("PUBLIC_URL", "ftp://regulars.example.com"),
        ("PUBLIC_URL", "https://regulars.example.com/?a=1"),
        ("PUBLIC_URL", "https://user:secret@regulars.example.com"),
        ("PUBLIC_URL", "https://regulars.example.com:99999"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,everyone"),
        ("DEFAULT_COUNTRY", "FRA"),
        ("DATABASE_URL", "mysql://host/db"),
        ("HOST", "   "),
    ],
)
def test_a_bad_value_names_its_variable_in_one_sentence(nowhere, name, value):
    with pytest.raises(SettingsError) as caught:
        load({**nowhere, f"REGULARS_{name}": value})
    sentence = str(caught.value)
    assert sentence.startswith(f"REGULARS_{name} must ")
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_an_empty_variable_counts_as_not_set(nowhere):
    assert load({**nowhere, "REGULARS_PORT": "", "DATABASE_URL": ""}).port == 8080


def test_database_url_is_honoured_and_ours_is_stronger(nowhere):
    assert load({**nowhere, "DATABASE_URL": "postgresql://a/b"}).database_url == "postgresql://a/b"
    both = {"DATABASE_URL": "postgresql://a/b", "REGULARS_DATABASE_URL": "postgresql://c/d"}
    assert load({**nowhere, **both}).database_url == "postgresql://c/d"


def test_names_of_the_test_suite_are_left_alone(nowhere):
    load({**nowhere, "REGULARS_TEST_DATABASE_URL": "anything"})


def test_lists_are_read_from_the_environment_and_from_the_file(nowhere, tmp_path):
    expected = ("10.0.0.0/8", "::1")
    assert load({**nowhere, "REGULARS_TRUSTED_PROXIES": "10.0.0.0/8, ::1"}).trusted_proxies == expected
    (tmp_path / "regulars.toml").write_text('trusted_proxies = ["10.0.0.0/8", "::1"]\n')
    assert load(nowhere).trusted_proxies == expected


def test_a_public_url_loses_its_last_slash(nowhere):
    found = load({**nowhere, "REGULARS_PUBLIC_URL": "https://regulars.example.com/"})
    assert (found.public_url, found.own_url) == ("https://regulars.example.com", "http://127.0.0.1:8080")


@pytest.mark.parametrize(
    ("host", "base"), [(str(IPv4Address(0)), "http://127.0.0.1:8080"), ("::", "http://[::1]:8080")]
)
def test_a_server_on_every_interface_is_reached_on_this_machine(nowhere, host, base):
    assert load({**nowhere, "REGULARS_HOST": host}).own_url == base


def test_an_ipv6_host_gets_brackets_in_links(nowhere):
    assert load({**nowhere, "REGULARS_HOST": "::1"}).own_url == "http://[::1]:8080"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hunter2@host/db",
        "postgresql://user:hun/ter2@host/db",
        "postgresql://user:hunt@er2@host/db",
        "postgresql://host/db?user=u&password=hunter2",
    ],
)
def test_no_password_is_ever_shown(nowhere, url):
    found = load({**nowhere, "DATABASE_URL": url})
    shown = repr(found) + "".join(repr(each) for each in describe(found))
    assert "hunter2" not in shown
    assert "ter2" not in shown
    assert "er2@" not in shown


def test_a_refused_database_url_does_not_repeat_its_password(nowhere):
    with pytest.raises(SettingsError) as caught:
        load({**nowhere, "DATABASE_URL": "mysql://user:hunter2@host/db"})
    assert "hunter2" not in str(caught.value)


def test_every_setting_is_described_with_a_sentence(nowhere):
    described = describe(load({**nowhere, "REGULARS_PORT": "81"}))
    assert [each.name for each in described] == list(settings.declarations())
    for each in described:
        assert each.meaning.endswith("."), each.name
    port = next(each for each in described if each.name == "port")
    assert (port.value, port.source, port.default) == ("81", "REGULARS_PORT", "8080")


def test_the_declared_defaults_lie_within_their_own_bounds():
    defaults = settings.Settings()
    for name, declaration in settings.declarations().items():
        value = getattr(defaults, name)
        if isinstance(value, int):
            assert declaration.kind.parse(value) == value, name


def test_the_data_folder_of_a_user_follows_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert settings.default_data_dir() == tmp_path / ".local" / "share" / "regulars"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert settings.default_data_dir() == tmp_path / ".local" / "share" / "regulars"
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert settings.default_data_dir() == Path("/var/lib/regulars")


def test_a_setting_that_went_is_still_accepted_with_a_warning_and_does_nothing(nowhere, caplog):
    without = load(nowhere)
    with caplog.at_level("WARNING"):
        found = load({**nowhere, "REGULARS_ENVIRONMENT": "development"})
    assert found == without
    assert [record.getMessage() for record in caplog.records] == [
        "REGULARS_ENVIRONMENT does nothing any more; take it out."
    ]
