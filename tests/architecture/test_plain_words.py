"""Names, comments and templates use words of the trade (`plain_words.py` has those that are not used)."""

from collections import Counter
from typing import Final

from tests.architecture.plain_words import findings, found_in_python, found_in_template

# A path below the project and a word, with the reason why the word stays there.
EXCEPTIONS: Final[dict[tuple[str, str], str]] = {
    (
        "src/regulars/messaging/settings/model.py",
        "heard",
    ): "`heard_until` is a key of stored JSON",
    ("src/regulars/segments/columns/model.py", "littered"): "a column of `segment_columns`",
    ("src/regulars/segments/columns/model.py", "tidy"): "a column of `segment_columns`",
}
# Words that are still to be replaced, by room: a number may only fall, and a room that is not here has none.
LEFT: Final = {
    "src/regulars/segments": 2,
    "tests/conditions": 2,
    "tests/explore": 11,
    "tests/sales": 27,
    "tests/segments": 50,
}


def room_of(path: str) -> str:
    return "/".join(path.split("/")[: 3 if path.startswith("src/") else 2])


def test_names_comments_and_templates_use_plain_words():
    found = [one for one in findings(["src", "tests", "bench"]) if (one[0], one[2]) not in EXCEPTIONS]
    counts = Counter(room_of(path) for path, _, _ in found)
    grown = {room for room, count in counts.items() if count > LEFT.get(room, 0)}
    assert [f"{path}:{line}: {word}" for path, line, word in found if room_of(path) in grown] == []


def test_the_words_are_found_in_names_comments_and_texts():
    source = '"""For whoever reads."""\ndef tell(kept): pass  # nobody knows\n'
    assert sorted(word for _, word in found_in_python(source)) == ["kept", "nobody", "tell", "whoever"]
    assert list(found_in_python("query = 'SELECT kept FROM told'")) == []
    assert list(found_in_template('<p title="x">Nobody {{ whoever }}</p>')) == [(1, "nobody")]
