"""Field types of API requests and responses that several modules use, each with its check and its OpenAPI schema."""

from typing import Annotated, Any, Final

from msgspec import Meta

from regulars.kit.ids import EXTERNAL_ID_CHARACTERS_MAX, RESERVED_PREFIXES
from regulars.kit.json import STRING_CHARACTERS_MAX
from regulars.kit.text import check_external_id, check_reference, read_timestamp

_SPACE: Final = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_CONTROL: Final = r"\u0000-\u001f\u007f-\u009f"
# A reference has no control characters, and no white space at either end.
_REFERENCE: Final = rf"[^{_CONTROL}{_SPACE}](?:[^{_CONTROL}]*[^{_CONTROL}{_SPACE}])?$"
_LENGTHS: Final = {"minLength": 1, "maxLength": EXTERNAL_ID_CHARACTERS_MAX}
REFERENCE_SCHEMA: Final = {**_LENGTHS, "pattern": f"^{_REFERENCE}", "format": "reference"}
EXTERNAL_ID_SCHEMA: Final = {
    **_LENGTHS,
    "pattern": rf"^(?!{'|'.join(RESERVED_PREFIXES)}){_REFERENCE}",
    "format": "external-id",
}

# Any JSON that a caller stores with an object, such as `metadata`; a component of the OpenAPI document.
FREE_JSON: Final = "FreeJson"
FREE_JSON_SCHEMA: Final = {"$ref": f"#/components/schemas/{FREE_JSON}"}

# Marks a value that is accepted but not documented: the OpenAPI document leaves it out.
HIDDEN: Final = "x-hidden"
# An empty list in place of a map, because PHP writes an empty map like this.
EmptyMap = Annotated[list[Any], Meta(max_length=0, extra_json_schema={HIDDEN: True})]

# The name of an object that a user creates.
Name = Annotated[str, Meta(min_length=1, max_length=120)]
Text = Annotated[str, Meta(max_length=STRING_CHARACTERS_MAX)]
ExternalIdIn = Annotated[str, Meta(extra={"check": check_external_id}, extra_json_schema=EXTERNAL_ID_SCHEMA)]
ReferenceIn = Annotated[str, Meta(extra={"check": check_reference}, extra_json_schema=REFERENCE_SCHEMA)]
TimestampIn = Annotated[str, Meta(extra={"check": read_timestamp}, extra_json_schema={"format": "date-time"})]
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-03-02T09:30:00.000Z"])]
