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
}
# Words that are still to be replaced, by room: a number may only fall, and a room that is not here has none.
LEFT: Final = {
    "conditions": 9,
    "journeys": 2,
    "segments": 8,
}


def test_names_comments_and_templates_use_plain_words():
    found = [one for one in findings(["src"]) if (one[0], one[2]) not in EXCEPTIONS]
    counts = Counter(path.split("/")[2] for path, _, _ in found)
    grown = {room for room, count in counts.items() if count > LEFT.get(room, 0)}
    assert [f"{path}:{line}: {word}" for path, line, word in found if path.split("/")[2] in grown] == []


def test_the_words_are_found_in_names_comments_and_texts():
    source = '"""For whoever reads."""\ndef tell(kept): pass  # nobody knows\n'
    assert sorted(word for _, word in found_in_python(source)) == ["kept", "nobody", "tell", "whoever"]
    assert list(found_in_python("query = 'SELECT kept FROM told'")) == []
    assert list(found_in_template('<p title="x">Nobody {{ whoever }}</p>')) == [(1, "nobody")]
