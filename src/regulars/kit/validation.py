"""Find all errors of a JSON document that msgspec refused; msgspec itself stops at the first error.

The document is compared with msgspec's description of the type. Four keys in the `extra` of a `Meta` add to it. `check`
is a function for a rule that a type cannot express: it gets the value, the path of its `field`, and the
`check_arguments` that `takes` names, and raises on an error. `hint` is added to the message, and `wanted` describes the
expected value where the types do not.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import inspect

from regulars.kit.errors import ApiError, FieldError, ValidationError, invalid

FAULTS_MAX: Final = 20
_Variant = tuple[inspect.Type, Mapping[str, Any]]


class TooManyFaults(Exception):  # not an error: it ends the search for faults
    """There are more errors than a response lists."""


class Faults:
    """The errors of a document, in the order in which the API documents the fields."""

    def __init__(self, check_arguments: Mapping[str, Any]) -> None:
        self.check_arguments = check_arguments
        self.errors: list[ApiError] = []
        self.is_truncated = False

    def add(self, field: str, code: str, message: str) -> None:
        self.append(_required(field) if code == "REQUIRED" else invalid(field, code, message))

    def append(self, error: ApiError) -> None:
        if len(self.errors) == FAULTS_MAX:
            self.is_truncated = True
            raise TooManyFaults
        self.errors.append(error)

    def combine(self) -> ApiError:
        """Return one error with the class and message of the first error, and the fields of all."""
        first, more = self.errors[0], len(self.errors) - 1
        detail = first.detail
        if self.is_truncated:
            detail += f" At least {FAULTS_MAX} more faults were found; errors lists the first {FAULTS_MAX}."
        elif more:
            detail += f" {more} more {'fault is' if more == 1 else 'faults are'} listed in errors."
        fields = [field for error in self.errors for field in error.errors]
        return type(first)(detail, errors=tuple(fields[:FAULTS_MAX]))


def _required(field: str) -> ValidationError:
    message = "This field is required."
    return ValidationError(
        f"{field} is required." if field else "The body must be an object.",
        errors=(FieldError(field, "REQUIRED", message),),
    )


def collect_faults(type_: inspect.Type, value: Any, faults: Faults, field: str = "") -> None:
    """Add the errors of the value at the path `field` to `faults`."""
    variants = list(_variants(type_))
    if value is None:
        if not _takes_null(type_):
            faults.add(field, "REQUIRED", "")
        return
    allowed = [(variant, extra) for variant, extra in variants if not isinstance(variant, inspect.NoneType)]
    matching = next((variant for variant in allowed if _fits(variant[0], value)), None)
    if matching is None:
        extra = allowed[0][1]
        code, message = _type_fault([variant for variant, _ in allowed], extra)
        faults.add(field, code, _with_hint(message, extra))
        return
    type_, extra = matching
    fault = _limit_fault(type_, value)
    if fault is not None:
        faults.add(field, fault[0], _with_hint(fault[1], extra))
        return
    if "check" in extra:
        try:
            extra["check"](
                value, field=field, **{name: faults.check_arguments[name] for name in extra.get("takes", ())}
            )
        except ApiError as error:
            faults.append(error)
    _collect_inner_faults(type_, value, faults, field)


def _variants(type_: inspect.Type, outer: Mapping[str, Any] = MappingProxyType({})) -> Iterator[_Variant]:
    """Yield the types that a value may have, each with its `extra`; that of the types around it takes precedence."""
    type_, own = _unwrap(type_)
    extra = {**own, **outer}
    if isinstance(type_, inspect.UnionType):
        for variant in type_.types:
            yield from _variants(variant, extra)
    else:
        yield type_, extra


def _collect_inner_faults(type_: inspect.Type, value: Any, faults: Faults, field: str) -> None:
    if isinstance(type_, inspect.StructType):
        _collect_member_faults(type_, value, faults, field)
    elif isinstance(type_, inspect.ListType):
        for index, item in enumerate(value):
            collect_faults(type_.item_type, item, faults, f"{field}[{index}]")
    elif isinstance(type_, inspect.DictType):
        for name, item in value.items():
            fault = _limit_fault(without_metadata(type_.key_type), name)
            if fault is not None:
                faults.add(field, fault[0], f"The name of a member is wrong: {fault[1]}")
            if item is None and not _takes_null(type_.value_type):
                faults.add(
                    _member(field, name), "WRONG_TYPE", f"{_NULL_MESSAGE} {_type_fault_in_map(type_.value_type)}"
                )
            else:
                collect_faults(type_.value_type, item, faults, _member(field, name))


_NULL_MESSAGE: Final = "null is no scalar; leave the key out."


def _takes_null(type_: inspect.Type) -> bool:
    return any(isinstance(variant, (inspect.NoneType, inspect.AnyType)) for variant, _ in _variants(type_))


def _type_fault_in_map(type_: inspect.Type) -> str:
    return _type_fault([variant for variant, _ in _variants(type_)], {})[1]


def _collect_member_faults(type_: inspect.StructType, value: Any, faults: Faults, field: str) -> None:
    for member in type_.fields:
        name = member.encode_name
        if name in value:
            collect_faults(member.type, value[name], faults, _member(field, name))
        elif member.required:
            faults.add(_member(field, name), "REQUIRED", "")


def _member(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unwrap(type_: inspect.Type) -> tuple[inspect.Type, Mapping[str, Any]]:
    return (type_.type, type_.extra or {}) if isinstance(type_, inspect.Metadata) else (type_, {})


def without_metadata(type_: inspect.Type) -> inspect.Type:
    return _unwrap(type_)[0]


def _fits(type_: inspect.Type, value: Any) -> bool:
    """Whether the value has the JSON type of this type, and is one of the allowed values if the type lists them."""
    match type_:
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.ListType():
            # A type with `max_length` 0 accepts only the empty list, which PHP sends for an empty map.
            return isinstance(value, list) and not (value and type_.max_length == 0)
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.LiteralType():
            return isinstance(value, str) and value in type_.values
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(type_, (inspect.AnyType, inspect.RawType))


_TYPE_NAMES: Final[dict[type[inspect.Type], str]] = {
    inspect.StructType: "an object",
    inspect.DictType: "an object",
    inspect.ListType: "a list",
    inspect.StrType: "text",
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
}


def _type_fault(types: Sequence[inspect.Type], extra: Mapping[str, Any]) -> tuple[str, str]:
    if "wanted" in extra:
        return "WRONG_TYPE", f"It must be {extra['wanted']}."
    allowed = [str(value) for type_ in types if isinstance(type_, inspect.LiteralType) for value in type_.values]
    if allowed:
        return "NOT_ALLOWED", f"It must be one of {', '.join(allowed)}."
    kinds = {type(type_) for type_ in types if not (isinstance(type_, inspect.ListType) and type_.max_length == 0)}
    if inspect.FloatType in kinds:
        kinds.discard(inspect.IntType)
    names = sorted(_TYPE_NAMES[kind] for kind in kinds)
    return "WRONG_TYPE", f"It must be {', '.join(names[:-1])}{' or ' if names[:-1] else ''}{names[-1]}."


def _limit_fault(type_: inspect.Type, value: Any) -> tuple[str, str] | None:
    if isinstance(type_, (inspect.IntType, inspect.FloatType)):
        if type_.ge is not None and value < type_.ge:
            return "OUT_OF_RANGE", f"It must be at least {type_.ge:,}."
        if type_.le is not None and value > type_.le:
            return "OUT_OF_RANGE", f"It must be at most {type_.le:,}."
    elif isinstance(type_, (inspect.StrType, inspect.ListType, inspect.DictType)):
        unit = "characters" if isinstance(type_, inspect.StrType) else "members"
        if type_.min_length is not None and len(value) < type_.min_length:
            message = "It must not be empty." if type_.min_length == 1 else f"It must have {type_.min_length} {unit}."
            return "LENGTH", message
        if type_.max_length is not None and len(value) > type_.max_length:
            return "LENGTH", f"It has more than {type_.max_length:,} {unit}."
    return None


def _with_hint(message: str, extra: Mapping[str, Any]) -> str:
    return f"{message} {extra['hint']}" if "hint" in extra else message
