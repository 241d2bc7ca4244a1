"""Decode JSON request bodies into one type: once if the body is valid, a second time to collect all its errors."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from regulars.kit import json, validation
from regulars.kit.errors import ApiError, InvalidJson

T = TypeVar("T")
R = TypeVar("R")

_NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})
# Paths of unknown fields that are reported: one more than a response lists, so that it can say that there are more.
UNKNOWN_FIELDS_MAX = 11
# The decoder raises these for a body that is not JSON or is nested too deeply.
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Reader(Generic[T]):
    """Decodes bodies of one type, a msgspec struct. The caller's `make` converts the struct to its own type.

    `make` validates the fields. If `make` or the decoder raises, the body is read a second time to collect all errors.
    """

    def __init__(self, type_: Any) -> None:
        self._strict: msgspec.json.Decoder[T] = msgspec.json.Decoder(forbid_unknown_fields(type_))
        self._lenient: msgspec.json.Decoder[T] = msgspec.json.Decoder(type_)
        self._type_info = inspect.type_info(type_)
        self._known_fields = _known_fields_of(self._type_info)
        fields = self._type_info.fields if isinstance(self._type_info, inspect.StructType) else ()
        self._raw_fields = frozenset(
            field.encode_name
            for field in fields
            if isinstance(validation.without_metadata(field.type), inspect.RawType)
        )

    def read(
        self,
        body: bytes,
        make: Callable[[T, tuple[str, ...]], R],
        *,
        check_arguments: Mapping[str, Any] = _NO_ARGUMENTS,
    ) -> R:
        """Return `make(decoded body, paths of its unknown fields)`, or raise one error that lists all errors.

        `check_arguments` are passed to the `check` functions of the fields (`validation.py`) that need them.
        """
        json.check_bytes(body)
        try:
            return make(self._strict.decode(body), ())
        except (msgspec.ValidationError, ApiError):
            return self._read_again(body, make, check_arguments)
        except NOT_JSON as error:
            raise not_json(error) from None

    def _read_again(
        self, body: bytes, make: Callable[[T, tuple[str, ...]], R], check_arguments: Mapping[str, Any]
    ) -> R:
        try:
            document = _document_decoder.decode(body)
        except NOT_JSON as error:
            # The strict decoder stopped at a wrong type, before the part of the body that is not JSON.
            raise not_json(error) from None
        unknown: dict[str, None] = {}
        _collect_unknown(self._known_fields, document, "", unknown)
        try:
            return make(self._lenient.decode(body), tuple(unknown)[:UNKNOWN_FIELDS_MAX])
        except (msgspec.ValidationError, ApiError) as error:
            raise self._all_faults(body, document, check_arguments) or error from None

    def _all_faults(self, body: bytes, document: Any, check_arguments: Mapping[str, Any]) -> ApiError | None:
        if isinstance(document, dict) and self._raw_fields and not self._raw_fields.isdisjoint(document):
            # Fields that are stored as raw JSON are checked as the caller spelled them.
            members = members_decoder.decode(body)
            document |= {name: members[name] for name in self._raw_fields if document.get(name) is not None}
        faults = validation.Faults(check_arguments)
        with contextlib.suppress(validation.TooManyFaults):
            validation.collect_faults(self._type_info, document, faults)
        return faults.combine() if faults.errors else None


_document_decoder = msgspec.json.Decoder(float_hook=json.SpelledNumber)
members_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _KnownFields(dict[str, "_KnownFields | None"]):
    """The fields of an object by name, each with its own fields if it is an object or a list of objects."""


def _known_fields_of(type_: inspect.Type) -> _KnownFields | None:
    for plain_type in plain_types(type_):
        if isinstance(plain_type, inspect.StructType):
            return _KnownFields({field.encode_name: _known_fields_of(field.type) for field in plain_type.fields})
    return None


def plain_types(type_: inspect.Type) -> Iterator[inspect.Type]:
    """Yield the plain types within a type that has metadata, is a union, or is a list."""
    match type_:
        case inspect.Metadata():
            yield from plain_types(type_.type)
        case inspect.UnionType():
            for variant in type_.types:
                yield from plain_types(variant)
        case inspect.ListType() | inspect.VarTupleType():
            yield from plain_types(type_.item_type)
        case _:
            yield type_


def _collect_unknown(known_fields: _KnownFields | None, value: Any, path: str, unknown: dict[str, None]) -> None:
    """Collect the paths of unknown fields: only the outermost of each, and without list positions."""
    if known_fields is None:
        return
    if isinstance(value, list):
        for item in value:
            _collect_unknown(known_fields, item, f"{path}[]", unknown)
    elif isinstance(value, dict):
        for name, member in value.items():
            member_path = f"{path}.{name}" if path else name
            if name not in known_fields:
                unknown[member_path] = None
            else:
                _collect_unknown(known_fields[name], member, member_path, unknown)


def not_json(error: Exception) -> InvalidJson:
    return InvalidJson(f"The body cannot be read as JSON: {error}.")


def forbid_unknown_fields(type_: Any) -> Any:
    """Return the same type, but with every object in it forbidding unknown fields."""
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return Annotated[(forbid_unknown_fields(arguments[0]), *arguments[1:])]
    if origin in (Union, UnionType):
        return Union[tuple(map(forbid_unknown_fields, arguments))]  # noqa: UP007  # built at run time
    if origin in (list, dict):
        return origin[tuple(map(forbid_unknown_fields, arguments))]
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return type_
    return msgspec.defstruct(
        type_.__name__,
        [_strict_field(field) for field in msgspec.structs.fields(type_)],
        bases=(type_,),
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _strict_field(field: msgspec.structs.FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    if field.required:
        return field.name, forbid_unknown_fields(field.type)
    if field.default_factory is not msgspec.NODEFAULT:
        return field.name, forbid_unknown_fields(field.type), msgspec.field(default_factory=field.default_factory)
    return field.name, forbid_unknown_fields(field.type), field.default
