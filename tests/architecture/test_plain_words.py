"""Names, comments, templates, scripts and styles use words of the trade (`plain_words.py` has those that are not used)."""

from typing import Final

from tests.architecture.plain_words import (
    findings,
    found_in_python,
    found_in_script,
    found_in_style,
    found_in_template,
)

# A path below the project and a word, with the reason why the word stays there.
EXCEPTIONS: Final[dict[tuple[str, str], str]] = {
    ("src/regulars/columns/model.py", "littered"): "a column of `segment_columns`",
    ("src/regulars/columns/model.py", "tidy"): "a column of `segment_columns`",
}


def test_names_comments_and_templates_use_plain_words():
    found = [one for one in findings(["src", "tests", "bench"]) if (one[0], one[2]) not in EXCEPTIONS]
    assert [f"{path}:{line}: {word}" for path, line, word in found] == []


def test_the_words_are_found_in_names_comments_and_texts():
    source = '"""For whoever reads."""\ndef tell(kept): pass  # nobody knows\n'
    assert sorted(word for _, word in found_in_python(source)) == ["kept", "nobody", "tell", "whoever"]
    assert list(found_in_python("query = 'SELECT kept FROM told'")) == []
    assert list(found_in_template('<p title="x">Nobody {{ whoever }}</p>')) == [(1, "nobody")]


def test_the_words_are_found_in_scripts_and_styles():
    source = 'const url = "https://nobody.example"; // For whoever reads.\nfunction tellUser(text) {\n  let { kept } = heard;\n}\n'
    assert list(found_in_script(source)) == [(1, "whoever"), (2, "tell"), (3, "kept")]
    assert list(found_in_script("rows.map((told) => told.id)")) == [(1, "told")]
    assert list(found_in_style(".nobody { color: red; }\n/* Nobody\n   sees it. */")) == [(2, "nobody")]
