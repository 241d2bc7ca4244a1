"""Reads the stored definition of a campaign so that it can be shown and repaired, whatever an older release stored."""

from typing import Any, Final

from regulars.campaigns.definition import FILE_BYTES_MAX, Definition
from regulars.conditions.check import Fault
from regulars.conditions.stored_documents import read_stored_document

UNNAMED: Final = "Unnamed campaign"
# The fields that a definition must have, with the values of a new draft.
_REQUIRED: Final[dict[str, Any]] = {"name": UNNAMED, "include": [], "variants": []}


def read_stored_definition(document: str) -> tuple[Definition, list[Fault]]:
    """Return the definition without the parts that are not valid, and a fault for each of them, with which the campaign
    cannot be sent. What sends a campaign reads its definition with `read_definition`, which refuses such a part."""
    return read_stored_document(document, Definition, dict, required=_REQUIRED, bytes_max=FILE_BYTES_MAX)
