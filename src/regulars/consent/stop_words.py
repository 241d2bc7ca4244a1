"""Classify customers' replies to texts as STOP, START, HELP, a possible STOP or other, by the words in
`stop_phrases.py`."""

import itertools
import re
import unicodedata
from enum import Enum
from typing import Final

from regulars.consent.stop_phrases import HARMLESS_WORDS, LANGUAGES, START_WORDS, STOP_PAIRS

# A keyword counts anywhere in a message of up to this many words; in a longer message it may be part of a sentence.
SHORT_MESSAGE_WORDS_MAX: Final = 3

STOP_KEYWORDS: Final = frozenset().union(*(language.stop for language in LANGUAGES))
START_KEYWORDS: Final = START_WORDS
HELP_KEYWORDS: Final = frozenset().union(*(language.help for language in LANGUAGES))
_KEYWORDS: Final = STOP_KEYWORDS | START_KEYWORDS | HELP_KEYWORDS

_ROOTS: Final = tuple(sorted({root for language in LANGUAGES for root in language.roots}))
_PHRASES: Final = re.compile(rf"\b(?:{'|'.join(phrase for language in LANGUAGES for phrase in language.phrases)})")
# The same keyword several times, with nothing between: "stopstop".
_REPEATED: Final = re.compile(rf"(?:{'|'.join(sorted(STOP_KEYWORDS, key=len, reverse=True))}){{2,}}")

_NOT_WORD: Final = re.compile(r"[\W_]+")
# An apostrophe inside a word does not split it ("don't"), unless it replaces a vowel ("d'arrêter", "m'écrire").
_ELIDED: Final = re.compile(r"\b([CDJLMNST]|QU)['\u2019`](?=\w)")
_JOINED: Final = re.compile(r"(?<=\w)['\u2019`](?=\w)")


class Meaning(Enum):
    STOP = "stop"
    START = "start"
    HELP = "help"
    # The reply may be an opt-out: a user decides.
    PERHAPS_STOP = "perhaps_stop"
    OTHER = "other"


def classify_reply(text: str) -> Meaning:
    """The meaning of a reply; case, accents, letter width and punctuation do not matter.

    A message that contains a stop word is a STOP if it has at most three words, or only keywords. A longer message with
    a stop word, and an opt-out without a keyword, is a possible STOP.
    """
    words = _words(text)
    if not words:
        return Meaning.OTHER
    has_stop_word = _has_stop_word(words)
    if has_stop_word and (len(words) <= SHORT_MESSAGE_WORDS_MAX or all(word in _KEYWORDS for word in words)):
        return Meaning.STOP
    # "S.T.O.P" and keywords that are written together count as the keyword too.
    joined = "".join(words)
    if joined in STOP_KEYWORDS or _REPEATED.fullmatch(joined):
        return Meaning.STOP
    if has_stop_word or _is_possible_stop(words):
        return Meaning.PERHAPS_STOP
    if len(words) <= SHORT_MESSAGE_WORDS_MAX and words[0] in START_KEYWORDS:
        return Meaning.START
    if len(words) <= SHORT_MESSAGE_WORDS_MAX and words[0] in HELP_KEYWORDS:
        return Meaning.HELP
    return Meaning.OTHER


def _has_stop_word(words: list[str]) -> bool:
    return any(word in STOP_KEYWORDS for word in words) or any(pair in STOP_PAIRS for pair in itertools.pairwise(words))


def _is_possible_stop(words: list[str]) -> bool:
    """Whether a word begins with one of the roots, or the words contain one of the phrases, of `stop_phrases.py`."""
    if any(word.startswith(_ROOTS) and word not in HARMLESS_WORDS for word in words):
        return True
    return _PHRASES.search(" ".join(words)) is not None


def _words(text: str) -> list[str]:
    # Compatibility decomposition turns full-width letters into plain ones and separates letters from their accents.
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(
        character
        for character in decomposed
        if not unicodedata.combining(character) and unicodedata.category(character) != "Cf"
    )
    folded = unicodedata.normalize("NFKD", bare.casefold()).upper()
    return _NOT_WORD.sub(" ", _JOINED.sub("", _ELIDED.sub(r"\1 ", folded))).split()
