"""The two query parameters that every list takes."""

from regulars.http.route import Parameter
from regulars.kit.pagination import CURSOR_CHARACTERS_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX

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
# For lists that can be followed as changes.
CHANGES_PARAMETER = Parameter(
    name="updated_from",
    schema={"type": "string", "format": "date-time"},
    description="What changed at this time or later, in the order of change. `next_cursor` is never null then: when "
    "`has_more` is false, keep it and ask again later. A change is seen within about three seconds; erasures are not.",
)
