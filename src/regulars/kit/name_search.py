"""Search among names by parts of words, whatever their case and accents, and with typing errors.

What a user typed becomes regular expressions, which PostgreSQL and Python read alike. A search is then one scan over a
limited number of names, in SQL or in memory, and needs no extension of PostgreSQL and no index that could be outdated.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from string import ascii_lowercase
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
_LAST_ACCENTED: Final = 0x24F
_WORD_START: Final = r"(?:^|\W)"


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
    """The spelling of names that the expressions match; the same as `lower(normalize(name, NFC))` in SQL."""
    return unicodedata.normalize("NFC", name).lower()


def find_parts(text: str) -> NamePatterns | None:
    """The expressions for names that contain all words of the text; None if the text has no word."""
    words = [_spell(word) for word in _read_words(text)]
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
    """The words of a text, without accents and case."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", text.lower()))
    return [word[:WORD_CHARACTERS_MAX] for word in re.findall(r"\w+", unicodedata.normalize("NFC", bare))[:WORDS_MAX]]


def _list_spellings() -> dict[str, str]:
    """Bracket expressions of the letters without accents: each with its forms that have one."""
    accented: dict[str, str] = dict.fromkeys(ascii_lowercase, "")
    for code in range(0xC0, _LAST_ACCENTED):
        letter = chr(code)
        bare = unicodedata.normalize("NFD", letter)[0]
        if bare in accented and letter == letter.lower():
            accented[bare] += letter
    return {letter: f"[{letter}{others}]" if others else letter for letter, others in accented.items()}


_SPELLINGS: Final = _list_spellings()


def _spell(word: str) -> str:
    # Letters and digits have no meaning of their own in an expression.
    return "".join(_SPELLINGS.get(letter, letter) for letter in word)


def _spell_similar(word: str) -> str:
    spelled = [_SPELLINGS.get(letter, letter) for letter in word[:SIMILAR_CHARACTERS_MAX]]
    size = len(spelled)
    if size < SIMILAR_CHARACTERS_MIN:
        return "".join(spelled)
    spellings = {"".join(spelled): None}
    for place in range(1, size):
        before, here, after = "".join(spelled[:place]), spelled[place], "".join(spelled[place + 1 :])
        spellings[before + r"\w" + after] = None
        spellings[before + r"\w" + here + after] = None
        spellings["".join(spelled[: place - 1]) + here + spelled[place - 1] + after] = None
        if size > SIMILAR_CHARACTERS_MIN:
            spellings[before + after] = None
    return f"(?:{'|'.join(spellings)})"
