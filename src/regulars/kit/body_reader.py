"""Read request bodies of one type: in one step if they are valid, else a second time to collect all errors."""

import contextlib
from collections.abc import Callable, Mapping
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect

from regulars.kit import json, validation
from regulars.kit.errors import ApiError, InvalidJson

T = TypeVar("T")
R = TypeVar("R")

_NO_ARGUMENTS: Mapping[str, Any] = MappingProxyType({})
# The most unknown fields that are collected: one more than a response lists.
IGNORED_MAX = 11
# The errors of the decoder for a body that is not JSON, or too deeply nested.
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Reader(Generic[T]):
    """Reads bodies of one wire type. `make` converts the decoded object to the module's own type.

    `make` runs the `check` functions of the type's fields itself. If it or the decoder raises, the body is read a
    second time to collect all errors.
    """

    def __init__(self, type_: Any) -> None:
        self._strict: msgspec.json.Decoder[T] = msgspec.json.Decoder(strictly(type_))
        self._lenient: msgspec.json.Decoder[T] = msgspec.json.Decoder(type_)
        self._type_info = inspect.type_info(type_)
        self._known = _known_members(self._type_info)
        fields = self._type_info.fields if isinstance(self._type_info, inspect.StructType) else ()
        self._raw_fields = frozenset(
            field.encode_name for field in fields if isinstance(_bare(field.type), inspect.RawType)
        )

    def read(
        self,
        body: bytes,
        make: Callable[[T, tuple[str, ...]], R],
        *,
        check_arguments: Mapping[str, Any] = _NO_ARGUMENTS,
    ) -> R:
        """Return the result of `make` for the body and the paths of its unknown fields, or raise one error that lists
        all errors.

        `check_arguments` has further arguments for `check` functions that need them.
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
            # The strict decoder stopped at a wrong type; what follows in the body is not JSON.
            raise not_json(error) from None
        ignored: dict[str, None] = {}
        _collect_unknown(self._known, document, "", ignored)
        try:
            return make(self._lenient.decode(body), tuple(ignored)[:IGNORED_MAX])
        except (msgspec.ValidationError, ApiError) as error:
            raise self._all_faults(body, document, check_arguments) or error from None

    def _all_faults(self, body: bytes, document: Any, check_arguments: Mapping[str, Any]) -> ApiError | None:
        if isinstance(document, dict) and self._raw_fields and not self._raw_fields.isdisjoint(document):
            # Fields that are stored as raw JSON are checked in their original spelling.
            members = members_decoder.decode(body)
            document |= {name: members[name] for name in self._raw_fields if document.get(name) is not None}
        faults = validation.Faults(check_arguments)
        with contextlib.suppress(validation.TooManyFaults):
            validation.walk(self._type_info, document, faults)
        return faults.combine() if faults.errors else None


_document_decoder = msgspec.json.Decoder(float_hook=validation.SpelledNumber)
members_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _KnownFields(dict[str, "_KnownFields | None"]):
    """The fields of an object by name, each with its own fields if it is an object or a list of objects."""


def _known_members(type_: inspect.Type) -> _KnownFields | None:
    match type_:
        case inspect.Metadata():
            return _known_members(type_.type)
        case inspect.UnionType():
            return next((known for one in type_.types if (known := _known_members(one)) is not None), None)
        case inspect.ListType():
            return _known_members(type_.item_type)
        case inspect.StructType():
            return _KnownFields({field.encode_name: _known_members(field.type) for field in type_.fields})
    return None


def _collect_unknown(known: _KnownFields | None, value: Any, path: str, unknown: dict[str, None]) -> None:
    """Collect the paths of unknown fields: only the outermost of each, and without list positions."""
    if known is None:
        return
    if isinstance(value, list):
        for item in value:
            _collect_unknown(known, item, f"{path}[]", unknown)
    elif isinstance(value, dict):
        for name, member in value.items():
            at = f"{path}.{name}" if path else name
            if name not in known:
                unknown[at] = None
            else:
                _collect_unknown(known[name], member, at, unknown)


def not_json(error: Exception) -> InvalidJson:
    return InvalidJson(f"The body cannot be read as JSON: {error}.")


def _bare(type_: inspect.Type) -> inspect.Type:
    return type_.type if isinstance(type_, inspect.Metadata) else type_


def strictly(type_: Any) -> Any:
    """The same type, but every object in it forbids unknown fields."""
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return Annotated[(strictly(arguments[0]), *arguments[1:])]
    if origin in (Union, UnionType):
        return Union[tuple(strictly(argument) for argument in arguments)]  # noqa: UP007  # built at run time
    if origin in (list, dict):
        return origin[tuple(strictly(argument) for argument in arguments)]
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
        return field.name, strictly(field.type)
    if field.default_factory is not msgspec.NODEFAULT:
        return field.name, strictly(field.type), msgspec.field(default_factory=field.default_factory)
    return field.name, strictly(field.type), field.default
