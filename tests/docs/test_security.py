"""The table of docs/security.md: every requirement once, and what it names exists."""

import re
from collections import Counter

from tests.support.project import ROOT

TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+\.\d+\.\d+) \| (1|2|1, 2) \| (held|not held, because) \| (.+) \|$", TEXT, re.MULTILINE)
# Requirements of levels 1 and 2 in version 4.0.3, by chapter, without those that it deleted.
CHAPTERS = {1: 38, 2: 53, 3: 18, 4: 9, 5: 30, 6: 13, 7: 12, 8: 15, 9: 7, 10: 5, 11: 8, 12: 15, 13: 13, 14: 23}


def test_every_requirement_is_answered_once():
    assert Counter(int(row[0].split(".")[0]) for row in ROWS) == CHAPTERS
    assert len({row[0] for row in ROWS}) == len(ROWS) == TEXT.count("held |") + TEXT.count("because |") - 2


def test_the_sums_are_those_of_the_table():
    not_held = [row for row in ROWS if row[2] != "held"]
    first = [row for row in ROWS if "1" in row[1]]
    assert f"| requirements | {len(first)} | {len(ROWS)} |" in TEXT
    assert f"| not held | {len([row for row in not_held if '1' in row[1]])} | {len(not_held)} |" in TEXT


def test_tests_and_files_that_it_names_exist():
    named = re.findall(r"`((?:tests|kit|web|bin|docs)/[\w./]+)`", TEXT)
    assert named
    missing = [name for name in named if not (ROOT / name).exists() and not (ROOT / "src" / "regulars" / name).exists()]
    assert missing == []
