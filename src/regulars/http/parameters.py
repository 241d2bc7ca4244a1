"""The query parameters of routes, which the OpenAPI document describes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regulars.kit.pagination import CURSOR_CHARACTERS_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter, with its JSON Schema."""

    name: str
    schema: Mapping[str, Any]
    description: str


# The two query parameters that every list takes.
PAGE_PARAMETERS = (
    Parameter(
        name="limit",
        schema={"type": "integer", "minimum": 1, "default": PAGE_ITEMS_DEFAULT},
        description=f"How many items a page has at most; above {PAGE_ITEMS_MAX} it counts as {PAGE_ITEMS_MAX}.",
    ),
    Parameter(
        name="cursor",
        schema={"type": "string", "minLength": 1, "maxLength": CURSOR_CHARACTERS_MAX, "format": "cursor"},
        description="The `next_cursor` of the page before, with the same filters. It never expires.",
    ),
)
# For lists that a caller can poll for changes.
CHANGES_PARAMETER = Parameter(
    name="updated_from",
    schema={"type": "string", "format": "date-time"},
    description="What changed at this time or later, in the order of change. `next_cursor` is never null then: when "
    "`has_more` is false, store it and poll again later. A change is visible within about three seconds; erasures are "
    "not listed.",
)
