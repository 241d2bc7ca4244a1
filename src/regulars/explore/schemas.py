"""Describe JSON Schemas for the API reference: types with links, limits, and the fields of an object."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

# The `format` values that the reference shows instead of "string".
FORMAT_LABELS: Final = {"date-time": "timestamp", "date": "date", "uri": "address", "uri-reference": "address"}
_NULL: Final = {"type": "null"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a type's label, such as "list of"; a schema's name links to the schema at `anchor`."""

    text: str
    anchor: str = ""


_OR: Final = Piece(" or ")


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: tuple[Piece, ...]
    is_required: bool
    description: str
    values: tuple[str, ...]
    limits: str
    example: str


def type_of(schema: Mapping[str, Any]) -> tuple[Piece, ...]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return (Piece(name, f"schema-{name}"),)
    if "anyOf" in schema:
        return _join_alternatives(type_of(choice) for choice in schema["anyOf"])
    if "allOf" in schema:
        return type_of(schema["allOf"][0])
    if isinstance(schema.get("type"), list):
        return _join_alternatives(type_of({**schema, "type": kind}) for kind in schema["type"])
    return _simple_type(schema)


def _simple_type(schema: Mapping[str, Any]) -> tuple[Piece, ...]:
    kind = schema.get("type", "string" if "enum" in schema else "object" if "properties" in schema else "any value")
    if kind == "array":
        items = schema.get("items")
        return (Piece("list of "), *_bracket_alternatives(type_of(items))) if items else (Piece("list"),)
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        values = schema["additionalProperties"]
        return (Piece("map of "), *_bracket_alternatives(type_of(values))) if values else (Piece("object"),)
    if kind == "string":
        return (Piece(FORMAT_LABELS.get(schema.get("format", ""), "string")),)
    return (Piece(kind),)


def _bracket_alternatives(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Put alternatives inside another type in brackets: a map of (string or null)."""
    return (Piece("("), *pieces, Piece(")")) if _OR in pieces else pieces


def _join_alternatives(types: Iterable[tuple[Piece, ...]]) -> tuple[Piece, ...]:
    """Join alternatives, without repeating equal ones."""
    pieces: list[Piece] = []
    for alternative in dict.fromkeys(types):
        pieces += [_OR, *alternative] if pieces else alternative
    return tuple(pieces)


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    required = frozenset(schema.get("required", ()))
    properties = schema.get("properties", {})
    return tuple(field_of(name, member, is_required=name in required) for name, member in properties.items())


def field_of(name: str, schema: Mapping[str, Any], *, is_required: bool) -> Field:
    value_schema = _without_null(schema)
    examples = value_schema.get("examples", ())
    return Field(
        name=name,
        type=type_of(schema),
        is_required=is_required,
        description=value_schema.get("description", ""),
        values=tuple(str(value) for value in value_schema.get("enum", ()) if value is not None),
        limits=", ".join(_limits(value_schema)),
        example=_as_text(examples[0]) if examples else "",
    )


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an optional value: the alternative that is not null."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != _NULL]
    return {**choices[0], **schema} if len(choices) == 1 else schema


def _limits(schema: Mapping[str, Any]) -> Iterable[str]:
    yield from _range(schema.get("minLength"), schema.get("maxLength"), "characters")
    yield from _range(schema.get("minItems"), schema.get("maxItems"), "items")
    yield from _range(schema.get("minProperties"), schema.get("maxProperties"), "keys")
    yield from _range(schema.get("minimum"), schema.get("maximum"), "")
    if "exclusiveMinimum" in schema:
        yield f"more than {schema['exclusiveMinimum']:,}"
    if "exclusiveMaximum" in schema:
        yield f"less than {schema['exclusiveMaximum']:,}"
    if "default" in schema:
        yield f"{_as_text(schema['default'])} when left out"


def _range(minimum: float | None, maximum: float | None, unit: str) -> Iterable[str]:
    suffix = f" {unit}" if unit else ""
    if minimum is not None and maximum is not None:
        yield f"{minimum:,} to {maximum:,}{suffix}"
    elif maximum is not None:
        yield f"at most {maximum:,}{suffix}"
    elif minimum is not None:
        yield f"at least {minimum:,}{suffix}"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
