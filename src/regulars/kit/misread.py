"""What a decoder said about a document that a person wrote, in words for people."""

import re
from typing import Final

_PLACE: Final = re.compile(r" - at `\$?\.?(?P<place>[^`]*)`$")
_WORDS: Final = (
    (re.compile(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`"), r"expected \1, got \2"),
    (re.compile(r"Object missing required field `(\w+)`"), r"\1 is missing"),
    (re.compile(r"Object contains unknown field `([^`]*)`"), r"\1 is not known here"),
    (re.compile(r"Invalid (?:enum )?value (.*)"), r"\1 is none of the known words"),
    (re.compile(r"Expected `str` matching regex .*"), r"it is not written as it must be"),
)
_TYPES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
    "date": "a date such as 2026-11-15",
}


def in_words(message: str) -> tuple[str, str]:
    """Where in the document, which may be nowhere in particular, and what is wrong."""
    found = _PLACE.search(message)
    text = message[: found.start()] if found else message
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    for name, words in _TYPES.items():
        text = re.sub(rf"\b{name}\b", words, text)
    return found["place"] if found else "", text.replace("`", "'") + "."
