"""The definition of a campaign; its JSON Schema is generated from these types."""

from datetime import date, datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from regulars.conditions.check import Fault
from regulars.conditions.documents import read_document, schema_of
from regulars.conditions.stored_documents import read_stored_document
from regulars.experiments.arms import PERCENT, Variant
from regulars.kit.wire import Name

FILE_BYTES_MAX: Final = 64 * 1024
SEGMENTS_MAX: Final = 20
VARIANTS_MAX: Final = 4
# The fields that a definition must have, with the values of a new draft.
_REQUIRED: Final[dict[str, Any]] = {"name": "Unnamed campaign", "include": [], "variants": []}

SegmentId = Annotated[str, Meta(min_length=1, max_length=64, description="The id of a segment, such as seg_….")]
CampaignId = Annotated[str, Meta(min_length=1, max_length=64, description="The id of a campaign, such as cmp_….")]
Moment = Annotated[datetime, Meta(tz=True)]
Clock = Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="Local time, such as 10:00.")]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    pass


class SendNow(_Strict, frozen=True, tag_field="start", tag="now", kw_only=True):
    """As soon as a person confirms it."""


class SendAt(_Strict, frozen=True, tag_field="start", tag="at", kw_only=True):
    """At one moment for all recipients."""

    at: Moment


class SendAtLocalTime(_Strict, frozen=True, tag_field="start", tag="local", kw_only=True):
    """On a day at a time of each recipient's own zone."""

    day: date
    time: Clock


class Definition(_Strict, frozen=True, kw_only=True):
    name: Name
    # The audience contains the customers who are in any segment of `include` and in no segment of `exclude`.
    include: Annotated[tuple[SegmentId, ...], Meta(max_length=SEGMENTS_MAX)]
    exclude: Annotated[tuple[SegmentId, ...], Meta(max_length=SEGMENTS_MAX)] = ()
    # Customers who received one of these campaigns are excluded.
    exclude_received: Annotated[tuple[CampaignId, ...], Meta(max_length=SEGMENTS_MAX)] = ()
    variants: Annotated[tuple[Variant, ...], Meta(max_length=VARIANTS_MAX)]
    holdout_percent: Annotated[int, Meta(ge=0, le=90)] = 0
    schedule: SendNow | SendAt | SendAtLocalTime = SendNow()
    # Nothing is sent after this time; the default is the end of the second day.
    not_after: Moment | None = None
    texts_per_hour: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    # Whether each recipient gets separate links, so that a click identifies the recipient; otherwise all recipients of
    # a variant get the same links.
    personal_links: bool = False
    # What to do with a recipient who got as many texts as the frequency caps allow: skip the recipient, or wait until
    # the caps allow another text.
    cap: Literal["skip", "wait"] = "skip"
    # The campaign pauses if its recipients or its cost exceed the confirmed numbers by more than this.
    margin_percent: Annotated[int, Meta(ge=0, le=PERCENT)] = 5


def read_definition(content: bytes) -> Definition:
    """Raises `DefinitionRefused`, whose message names the faulty field."""
    return read_document(content, Definition, dict, bytes_max=FILE_BYTES_MAX)


def read_stored_definition(document: str) -> tuple[Definition, list[Fault]]:
    """Return the definition without the parts that are not valid, and a fault for each of them, with which the campaign
    cannot be sent. What sends a campaign reads its definition with `read_definition`, which refuses such a part."""
    return read_stored_document(document, Definition, dict, required=_REQUIRED, bytes_max=FILE_BYTES_MAX)


def write_definition(definition: Definition) -> bytes:
    """Raises `DefinitionRefused` if `read_definition` would refuse what is written, because a form builds definitions
    whose fields are not checked otherwise."""
    content = msgspec.json.encode(definition)
    read_definition(content)
    return content


def schema() -> bytes:
    return schema_of(Definition, "A campaign of Regulars")
