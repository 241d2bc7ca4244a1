"""Reading a definition from a file or a form, and saying in words for people what cannot be read."""

import re
from typing import Final

import msgspec

from regulars.journeys.definition import Definition
from regulars.journeys.errors import DefinitionRefused

FILE_BYTES_MAX: Final = 256 << 10
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
}


def read_definition(content: bytes) -> Definition:
    """The definition, or `DefinitionRefused` with the place that cannot be read."""
    if len(content) > FILE_BYTES_MAX:
        raise DefinitionRefused(f"A definition has at most {FILE_BYTES_MAX >> 10} KB.")
    try:
        return msgspec.json.decode(content, type=Definition)
    except msgspec.ValidationError as error:
        raise DefinitionRefused(_in_words(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DefinitionRefused("The definition is not JSON.") from None


def write_definition(definition: Definition) -> bytes:
    return msgspec.json.encode(definition)


def schema() -> bytes:
    """The JSON Schema of a definition."""
    described = msgspec.json.schema(Definition)
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A journey of Regulars", **described}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def _in_words(message: str) -> str:
    found = _PLACE.search(message)
    place = found["place"] if found else ""
    text = message[: found.start()] if found else message
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    for name, words in _TYPES.items():
        text = re.sub(rf"\b{name}\b", words, text)
    text = text.replace("`", "'")
    return f"{place}: {text}." if place else f"{text}."
