import re

import pytest
from tests.support.project import ROOT, tracked_files

# Written in pieces, so that this file does not find itself.
MACHINE_PATHS = re.compile(
    "|".join([r"(?<!tests)/" + "work/", "/" + "root/", "/" + "opt/", "/" + r"(home|Users)/(?!alice\b)\w+/"])
)
INDEX_ADDRESSES = re.compile("|".join([r"--(extra-)?index" + "-url", "find" + "-links", "py" + r"pi[\w.-]*/simple"]))


def text_of(path):
    data = path.read_bytes()
    return "" if b"\0" in data else data.decode(errors="replace")


def finds(pattern):
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked_files()
        # A search of the whole text costs far less than one of each line.
        if pattern.search(text := text_of(path))
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_holds_a_path_of_one_machine():
    assert finds(MACHINE_PATHS) == []


def test_no_file_holds_the_address_of_a_package_index():
    assert finds(INDEX_ADDRESSES) == []


@pytest.mark.parametrize("line", ["cd /" + "root/x", "see /home" + "/bob/notes", "/Users" + "/carol/x"])
def test_the_path_rule_sees_machine_paths(line):
    assert MACHINE_PATHS.search(line)


def test_every_pinned_package_has_a_hash():
    for listing in (ROOT / "requirements").glob("*.txt"):
        entries = [entry for entry in re.split(r"\n(?=\S)", listing.read_text()) if not entry.startswith("#")]
        assert entries
        assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
