import dataclasses
import re
from pathlib import Path

import pytest

from regulars.kit import settings

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
FOUND = re.findall(r"^### `(\w+)`\n\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
SECTIONS = dict(FOUND)


@pytest.mark.parametrize(("name", "declaration"), settings.declarations().items())
def test_every_setting_is_documented_as_it_is_declared(name, declaration):
    section = SECTIONS[settings.variable_of(name)]
    assert declaration.meaning in section
    assert f"`{name}`" in section
    assert declaration.kind.name in section
    if declaration.kind.minimum is not None:
        assert f"{declaration.kind.minimum} to {declaration.kind.maximum}" in section
    if declaration.kind.unit:
        assert f"({declaration.kind.unit})" in section


def test_the_defaults_are_those_of_the_code():
    for field in dataclasses.fields(settings.Settings):
        if field.default in (dataclasses.MISSING, None, ()):
            continue
        assert f"Default: `{field.default}`" in SECTIONS[settings.variable_of(field.name)], field.name


def test_no_setting_is_documented_that_does_not_exist():
    known = {settings.variable_of(name) for name in settings.declarations()}
    assert set(SECTIONS) == known | {settings.CONFIG_VARIABLE, settings.DATABASE_URL_VARIABLE}


def test_no_setting_is_documented_twice():
    assert len(FOUND) == len(SECTIONS)


def test_the_example_file_is_valid(tmp_path, monkeypatch):
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    file = tmp_path / "regulars.toml"
    file.write_text(example[1])
    assert settings.load({}, file).workers == 2
