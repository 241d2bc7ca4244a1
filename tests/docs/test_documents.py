"""Documents that are out of step with the code are worse than none."""

import re
import tomllib
from pathlib import Path

import pytest

from regulars.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)")


def names(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_every_link_leads_to_a_file(document):
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize(
    "name", ["README", "ARCHITECTURE", "STYLE", "CONTRIBUTING", "CHANGELOG", "SECURITY", "docs/operations"]
)
def test_the_documents_a_stranger_looks_for_are_there(name):
    assert (ROOT / f"{name}.md").stat().st_size > 400


def test_every_script_is_in_the_guide_for_contributors():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for script in (ROOT / "bin").iterdir():
        if script.name != "setup":
            assert f"bin/{script.name}" in guide, script.name


def test_what_no_test_runs_says_so():
    for name in ("Dockerfile", "compose.yaml"):
        assert "Not run by the tests" in (ROOT / name).read_text(encoding="utf-8")
        assert f"]({name})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_changelog_starts_with_what_is_unreleased():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"


def test_the_commands_that_are_documented_exist():
    for document in DOCUMENTS:
        for name in re.findall(r"`regulars ([a-z]+)", document.read_text(encoding="utf-8")):
            assert name in COMMANDS, f"{names(document)}: regulars {name}"


def test_every_command_is_in_the_operations_page():
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    for name, command in COMMANDS.items():
        if not command.hidden:
            assert f"`regulars {name}" in page


def decisions() -> list[Path]:
    return sorted((ROOT / "docs" / "decisions").rglob("0*.md"))


def test_every_decision_is_one_page_with_the_same_parts():
    assert len(decisions()) >= 9
    # Work in progress elsewhere may hold numbers in between; none is used twice.
    assert len({path.name[:4] for path in decisions()}) == len(decisions())
    for path in decisions():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 60, path.name
        for part in ("## Situation", "## Decision", "## What follows"):
            assert part in text, f"{path.name}: {part}"


def test_every_decision_has_a_status_and_a_line_in_the_index():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for path in decisions():
        status = path.read_text(encoding="utf-8").splitlines()[2]
        expected = "Status: replaced by " if path.parent.name == "archive" else "Status: current"
        assert status.startswith(expected), path.name
        assert f"]({path.relative_to(folder)})" in index, path.name


# A file or folder of the project in backticks: `kit/vault.py`, `tests/sales`, `src/regulars/sales/`.
PATH = re.compile(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9-]+(?:\.(?:py|sql|html|js|css|toml|json|md|yaml))?)?)`")
PARENTS = (ROOT, ROOT / "src" / "regulars", ROOT / "docs", ROOT / "tests")
# What runs on one machine write is not part of the project.
WRITTEN_LATER = {"bench/results/local/"}
FIRST_FOLDERS = {path.name for parent in PARENTS[:2] for path in parent.iterdir() if path.is_dir()} - {"build"}


def paths_in(text: str) -> list[str]:
    return [path for path in PATH.findall(text) if path.split("/")[0] in FIRST_FOLDERS and path not in WRITTEN_LATER]


@pytest.mark.parametrize("document", [one for one in DOCUMENTS if one.parent.name != "archive"], ids=names)
def test_every_path_that_is_named_exists(document):
    text = document.read_text(encoding="utf-8")
    missing = [path for path in paths_in(text) if not any((parent / path).exists() for parent in PARENTS)]
    # The history of changes names what existed at the time.
    assert missing == [] or document.name == "CHANGELOG.md", missing


def test_the_metrics_that_are_documented_exist():
    package = ROOT / "src" / "regulars"
    sources = (package / "server.py", *package.rglob("metrics.py"))
    served = "".join(source.read_text(encoding="utf-8") for source in sources)
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(regulars_[a-z_]+)`", page):
        assert name.removesuffix("_total") in served, name


def test_the_newest_release_of_the_changelog_is_the_version_of_the_package():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d{{2}}-\d{{2}}", headings[1])
