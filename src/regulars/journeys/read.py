"""Reading a definition from a file or a form, and saying in words for people what cannot be read."""

from typing import Final

import msgspec

from regulars.journeys.definition import Definition
from regulars.journeys.errors import DefinitionRefused
from regulars.kit.misread import in_words

FILE_BYTES_MAX: Final = 256 << 10


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
    place, words = in_words(message)
    return f"{place}: {words}" if place else words
