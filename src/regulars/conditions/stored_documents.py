"""Reads a stored definition so that it can be shown and repaired, whatever an older release or a damaged row stored.

A part that is not valid is left out and becomes a fault, with which the definition is neither evaluated nor sent. What
runs a definition reads it with `read_document`, which refuses such a part.
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final, TypeVar

import msgspec

from regulars.conditions.check import Fault
from regulars.conditions.documents import DefinitionRefused, describe_decode_error, read_document

Document = TypeVar("Document", bound=msgspec.Struct)
_PART: Final = re.compile(r"[^.\[\]]+")
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `([^`]*)`")


def read_stored_document(
    document: str,
    kind: type[Document],
    upgrade: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    required: Mapping[str, Any],
    bytes_max: int,
) -> tuple[Document, list[Fault]]:
    """Return the definition without the parts that are not valid, and a fault for each of them. `required` has the
    fields that a definition must have, with the values of a new one."""
    content = document.encode(errors="surrogatepass")
    faults: list[Fault] = []
    try:
        return read_document(content, kind, upgrade, bytes_max=bytes_max), []
    except DefinitionRefused as error:
        if len(content) > bytes_max:
            faults.extend(error.faults)
    try:
        data = upgrade({**deepcopy(dict(required)), **msgspec.json.decode(content, type=dict[str, Any])})
        return _convert(data, kind, required, faults), faults
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        faults.append(Fault("", "The definition is not JSON."))
        return msgspec.convert(dict(required), kind), faults


def _convert(data: dict[str, Any], kind: type[Document], required: Mapping[str, Any], faults: list[Fault]) -> Document:
    while True:
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError as error:
            place, message = describe_decode_error(str(error))
            faults.append(Fault(place, message))
            unknown = _UNKNOWN_FIELD.match(str(error))
            _remove(data, _PART.findall(place) + ([unknown[1]] if unknown else []))
            data.update({name: deepcopy(value) for name, value in required.items() if name not in data})


def _remove(data: dict[str, Any], path: list[str]) -> None:
    """Remove the part at the path, or the innermost existing one that contains it, so that every call removes one."""
    found: tuple[Any, Any] | None = None
    inner: Any = data
    for name in path:
        key: Any = int(name) if isinstance(inner, list) and name.isdigit() else name
        if not isinstance(inner, (dict, list)) or key not in (inner if isinstance(inner, dict) else range(len(inner))):
            break
        found, inner = (inner, key), inner[key]
    if found is None:
        data.clear()
    else:
        container, key = found
        del container[key]
