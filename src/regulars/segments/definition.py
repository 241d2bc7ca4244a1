"""The definition of a segment, and the errors of the segments package. `docs/segments.md` describes the file format."""

from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec

from regulars.conditions.check import Fault
from regulars.conditions.documents import Unreadable, read_document, schema_of, upgrade
from regulars.conditions.tree import DEPTH_MAX, Group, OfTicket, depth_of
from regulars.kit.wire import Name

FILE_BYTES_MAX: Final = 1 << 20
# The largest number of segments in a chain of references.
CHAIN_MAX: Final = 10
NO_TICKET: Final = "a segment has none"


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    name: Name
    match: Group


def read_definition(content: bytes) -> Definition:
    """Read a definition; raises `DefinitionRefused` with the path that cannot be read."""
    try:
        definition = read_document(content, Definition, _upgrade, bytes_max=FILE_BYTES_MAX)
    except Unreadable as error:
        raise DefinitionRefused([Fault(error.place, error.message)]) from None
    if depth_of(definition.match) > DEPTH_MAX:
        raise DefinitionRefused([Fault("match", f"Groups are nested at most {DEPTH_MAX} deep.")])
    return definition


def _upgrade(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "match": upgrade(data["match"])} if "match" in data else data


def write_definition(definition: Definition) -> bytes:
    return msgspec.json.encode(definition)


def schema() -> bytes:
    return schema_of(Definition, "A segment of Regulars", without=get_args(OfTicket))


class SegmentError(Exception):
    """Base of the errors of the segments package; each message is one sentence for the user."""


class DefinitionRefused(SegmentError):
    """The definition cannot be read, or has faults and cannot be saved."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        first = faults[0]
        more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{first.place}: {first.message}{more}" if first.place else f"{first.message}{more}")
        self.faults = tuple(faults)


class SegmentNotFound(SegmentError):
    pass


class InUse(SegmentError):
    """A segment, journey or campaign still uses the segment."""
