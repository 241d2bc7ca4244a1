"""Reads the stored definition of a campaign so that it can be shown and repaired, whatever an older release stored.

A part that is not valid is left out and becomes a fault, so that the campaign cannot be sent. What sends a campaign
reads its definition with `read_definition`, which refuses such a part.
"""

import re
from typing import Any, Final

import msgspec

from regulars.campaigns.definition import FILE_BYTES_MAX, Definition, read_definition
from regulars.campaigns.errors import DefinitionRefused
from regulars.conditions.check import Fault
from regulars.conditions.documents import describe_decode_error

UNNAMED: Final = "Unnamed campaign"
# The fields that a definition must have, with the values of a new draft.
_REQUIRED: Final[dict[str, Any]] = {"name": UNNAMED, "include": [], "variants": []}
_PART: Final = re.compile(r"[^.\[\]]+")


def read_stored_definition(document: str) -> tuple[Definition, list[Fault]]:
    """Return the definition without the parts that are not valid, and a fault for each of them."""
    content = document.encode()
    try:
        return read_definition(content), []
    except DefinitionRefused:
        pass
    faults = []
    if len(content) > FILE_BYTES_MAX:
        faults.append(Fault("", f"The definition has more than {FILE_BYTES_MAX >> 10} KB."))
    data = {**_REQUIRED, **msgspec.json.decode(content, type=dict[str, Any])}
    for unknown in data.keys() - set(Definition.__struct_fields__):
        del data[unknown]
        faults.append(Fault(unknown, "It is not a known field."))
    while True:
        try:
            return msgspec.convert(data, Definition), faults
        except msgspec.ValidationError as error:
            place, message = describe_decode_error(str(error))
            faults.append(Fault(place, message))
            _remove(data, _PART.findall(place))


def _remove(data: dict[str, Any], path: list[str]) -> None:
    """Remove the part at the path, or the innermost existing one that contains it, so that every call removes one. The
    fields that a definition must have begin anew."""
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
    data.update({name: value for name, value in _REQUIRED.items() if name not in data})
