"""The definition of a segment (name and conditions), which is read from JSON and written as JSON. `docs/segments.md`
describes the file format."""

from typing import Any, Final, get_args

import msgspec

from regulars.conditions.check import Fault
from regulars.conditions.documents import DefinitionRefused, read_document, schema_of, upgrade
from regulars.conditions.stored_documents import read_stored_document
from regulars.conditions.tree import DEPTH_MAX, All, Group, TicketCondition, depth_of
from regulars.kit.wire import Name

FILE_BYTES_MAX: Final = 1 << 20
# How many segments may refer to one another in a chain.
CHAIN_MAX: Final = 10
# Completes the error message "A condition is about the ticket, and …".
NO_TICKET: Final = "a segment has none"
TOO_DEEP: Final = f"Groups are nested at most {DEPTH_MAX} deep."
# The fields that a definition must have, with values for those that a stored one lacks.
_REQUIRED: Final[dict[str, Any]] = {"name": "Unnamed segment", "match": {"type": "all"}}


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    name: Name
    match: Group


def read_definition(content: bytes) -> Definition:
    """Raises `DefinitionRefused` with the path (`place`) of the part that cannot be parsed."""
    definition = read_document(content, Definition, _upgrade, bytes_max=FILE_BYTES_MAX)
    if depth_of(definition.match) > DEPTH_MAX:
        raise DefinitionRefused([Fault("match", TOO_DEEP)])
    return definition


def read_stored_definition(document: str) -> tuple[Definition, list[Fault]]:
    """Return the definition without the parts that are not valid, so that it can be shown and repaired, and a fault for
    each of them, with which the segment has no members."""
    definition, faults = read_stored_document(
        document, Definition, _upgrade, required=_REQUIRED, bytes_max=FILE_BYTES_MAX
    )
    if depth_of(definition.match) > DEPTH_MAX:
        faults.append(Fault("match", TOO_DEEP))
        definition = msgspec.structs.replace(definition, match=All())
    return definition, faults


def _upgrade(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "match": upgrade(data["match"])} if "match" in data else data


def write_definition(definition: Definition) -> bytes:
    """Raises `DefinitionRefused` if `read_definition` would refuse what is written."""
    content = msgspec.json.encode(definition)
    read_definition(content)
    return content


def schema() -> bytes:
    return schema_of(Definition, "A segment of Regulars", without=get_args(TicketCondition))
