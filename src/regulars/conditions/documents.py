"""Reading a definition from a file or a form, and saying in words for people what cannot be read."""

import inspect
import re
from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

import msgspec

Document = TypeVar("Document", bound=msgspec.Struct)
_PATH: Final = re.compile(r" - at `\$?\.?(?P<path>[^`]*)`$")
_REPHRASED: Final = (
    (re.compile(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`"), r"expected \1, got \2"),
    (re.compile(r"Object missing required field `(\w+)`"), r"\1 is missing"),
    (re.compile(r"Object contains unknown field `([^`]*)`"), r"\1 is not known here"),
    (re.compile(r"Invalid (?:enum )?value (.*)"), r"\1 is none of the known words"),
    (re.compile(r"Expected `str` matching regex .*"), r"it is not written as it must be"),
)
_TYPE_NAMES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
    "date": "a date such as 2026-11-15",
}


class Unreadable(Exception):
    """The place in the document, which may be nowhere in particular, and what is wrong there."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place
        self.message = message


def read_document(
    content: bytes, kind: type[Document], upgrade: Callable[[dict[str, Any]], dict[str, Any]], *, bytes_max: int
) -> Document:
    """The document in today's spelling; `upgrade` is given the decoded JSON."""
    if len(content) > bytes_max:
        raise Unreadable("", f"A definition has at most {bytes_max >> 10} KB.")
    try:
        data = msgspec.json.decode(content)
        return msgspec.convert(upgrade(data) if isinstance(data, dict) else data, kind)
    except msgspec.ValidationError as error:
        raise Unreadable(*describe_decode_error(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreadable("", "The definition is not JSON.") from None


def schema_of(kind: type[msgspec.Struct], title: str, *, without: Collection[type[msgspec.Struct]] = ()) -> bytes:
    """The JSON Schema of a definition; `without` are leaves that it cannot hold."""
    described = msgspec.json.schema(kind)
    names = {f"#/$defs/{leaf.__name__}" for leaf in without}
    for leaf in without:
        described["$defs"].pop(leaf.__name__)
    for part in described["$defs"].values():
        items = part.get("properties", {}).get("of", {}).get("items", {})
        if "anyOf" in items:
            items["anyOf"] = [one for one in items["anyOf"] if one["$ref"] not in names]
            mapping = items["discriminator"]["mapping"]
            items["discriminator"]["mapping"] = {tag: ref for tag, ref in mapping.items() if ref not in names}
        if "description" in part:
            # From Python 3.13 on a docstring has lost its indentation already.
            part["description"] = inspect.cleandoc(part["description"])
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **described}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def describe_decode_error(message: str) -> tuple[str, str]:
    """The path in the document (empty if msgspec names none) and what is wrong, in words for people."""
    found = _PATH.search(message)
    text = message[: found.start()] if found else message
    for pattern, words in _REPHRASED:
        text = pattern.sub(words, text)
    for name, words in _TYPE_NAMES.items():
        text = re.sub(rf"\b{name}\b", words, text)
    return found["path"] if found else "", text.replace("`", "'") + "."
