"""Reading a definition from a file or a form, and saying in words for people what cannot be read."""

import inspect
from typing import Final

import msgspec

from regulars.kit.misread import in_words
from regulars.segments.definition import DEPTH_MAX, Condition, Definition, depth_of
from regulars.segments.errors import DefinitionRefused, Fault

FILE_BYTES_MAX: Final = 1 << 20


def read_definition(content: bytes) -> Definition:
    """The definition, or `DefinitionRefused` with the place that cannot be read."""
    if len(content) > FILE_BYTES_MAX:
        raise DefinitionRefused([Fault("", f"A definition has at most {FILE_BYTES_MAX >> 10} KB.")])
    try:
        definition = msgspec.json.decode(content, type=Definition)
    except msgspec.ValidationError as error:
        raise DefinitionRefused([Fault(*in_words(str(error)))]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DefinitionRefused([Fault("", "The definition is not JSON.")]) from None
    if depth_of(definition.match) > DEPTH_MAX:
        raise DefinitionRefused([Fault("match", f"Groups are nested at most {DEPTH_MAX} deep.")])
    return definition


def write_definition(definition: Definition) -> bytes:
    return msgspec.json.encode(definition)


def write_condition(condition: Condition) -> bytes:
    """The same bytes for the same condition: a name for it in a cache."""
    return msgspec.json.encode(condition)


def schema() -> bytes:
    """The JSON Schema of a definition."""
    described = msgspec.json.schema(Definition)
    for part in described["$defs"].values():
        if "description" in part:
            # From Python 3.13 on a docstring has lost its indentation already.
            part["description"] = inspect.cleandoc(part["description"])
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A segment of Regulars", **described}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"
