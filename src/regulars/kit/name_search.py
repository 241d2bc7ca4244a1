"""Search among names by parts of words, whatever their case and accents, and with typing errors.

What a user typed becomes regular expressions, which PostgreSQL and Python read alike. A search is then one scan over a
limited number of names, in SQL or in memory, and needs no extension of PostgreSQL and no index that could be outdated.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

Row = TypeVar("Row")

# More words are not read. They and the longest word bound the size of the expressions.
WORDS_MAX: Final = 6
WORD_CHARACTERS_MAX: Final = 40
# In shorter words an error would match too much. Of longer ones the beginning is read, since the size of an expression
# grows with the square of the length.
SIMILAR_CHARACTERS_MIN: Final = 4
SIMILAR_CHARACTERS_MAX: Final = 12
_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_WORD_START: Final = r"(?:^|\W)"
# In SQL, the spelling of the names in an expression (`fill`) that `fold_name` gives them in Python.
FOLDED_NAME: Final = "replace(regexp_replace(normalize(lower({name}), NFD), '[\\u0300-\\u036f]', '', 'g'), 'ß', 'ss')"


class NamePatterns(NamedTuple):
    """The expressions of the words that a user typed, for names in the spelling of `fold_name`. A name matches if each
    of `parts` is in it. Each of `beginnings` finds the same word at the beginning of a word only."""

    parts: list[str]
    beginnings: list[str]

    @property
    def first(self) -> str:
        """Names with this expression are shown first."""
        return self.beginnings[0]


def fold_name(name: str) -> str:
    """The spelling of names that the expressions match: without accents and case."""
    return _ACCENTS.sub("", unicodedata.normalize("NFD", name.casefold()))


def find_parts(text: str) -> NamePatterns | None:
    """The expressions for names that contain all words of the text; None if the text has no word."""
    words = _read_words(text)
    return NamePatterns(words, [_WORD_START + word for word in words]) if words else None


def find_similar(text: str) -> NamePatterns | None:
    """The expressions for names with words that begin like those of the text, with at most one typing error in each: a
    letter too many, too few, another one, or two in the wrong order. The first letter is right, or the second."""
    words = [_WORD_START + _spell_similar(word) for word in _read_words(text)]
    return NamePatterns(words, words) if words else None


def filter_names(
    rows: Iterable[Row], patterns: NamePatterns, name_of: Callable[[Row], str], *, limit: int
) -> list[Row]:
    """The rows whose names match, in their order, but those first with a word that begins with the first word."""
    parts, first = [re.compile(part) for part in patterns.parts], re.compile(patterns.first)
    matching = []
    for row in rows:
        name = fold_name(name_of(row))
        if all(part.search(name) for part in parts):
            matching.append((first.search(name) is None, row))
    return [row for _, row in sorted(matching, key=lambda match: match[0])][:limit]


def _read_words(text: str) -> list[str]:
    return [word[:WORD_CHARACTERS_MAX] for word in re.findall(r"\w+", fold_name(text))[:WORDS_MAX]]


def _spell_similar(word: str) -> str:
    # Letters and digits have no meaning of their own in an expression.
    word = word[:SIMILAR_CHARACTERS_MAX]
    size = len(word)
    if size < SIMILAR_CHARACTERS_MIN:
        return word
    spellings = {word: None}
    for place in range(1, size):
        before, here, after = word[:place], word[place], word[place + 1 :]
        spellings[before + r"\w" + after] = None
        spellings[before + r"\w" + here + after] = None
        spellings[before[:-1] + here + before[-1] + after] = None
        if size > SIMILAR_CHARACTERS_MIN:
            spellings[before + after] = None
    return f"(?:{'|'.join(spellings)})"
