"""The tree of the conditions with which users filter customers, in segments and journeys.

Groups nest conditions, so that a definition is a tree; `docs/conditions.md` describes it. The published JSON Schemas
are generated from these types. A kind of condition is one file of `kinds`, and stands in two lists here: the union of
the types, and the forms in the order in which the builder offers them. Conditions on the ticket that triggered a
journey are here too, because a group may contain them; a segment with such a condition is invalid.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from regulars.conditions.field_types import (
    Comparison,
    ConsentState,
    DateComparison,
    OfProperty,
    ValueComparison,
    When,
    Window,
)
from regulars.conditions.forms.parts import Form
from regulars.conditions.kind import Kind, References
from regulars.conditions.kinds.attribute import OfAttribute
from regulars.conditions.kinds.bought import Bought
from regulars.conditions.kinds.consent import Consent
from regulars.conditions.kinds.country import Country
from regulars.conditions.kinds.created import Created
from regulars.conditions.kinds.first_purchase import FirstPurchase
from regulars.conditions.kinds.in_segment import InSegment
from regulars.conditions.kinds.last_purchase import LastPurchase
from regulars.conditions.kinds.named import Named
from regulars.conditions.kinds.received_campaign import ReceivedCampaign
from regulars.conditions.kinds.returned import Returned
from regulars.conditions.kinds.spend import Spend
from regulars.conditions.kinds.texts import Texts
from regulars.conditions.kinds.ticket_amount import OfAmount
from regulars.conditions.kinds.ticket_currency import OfCurrency
from regulars.conditions.kinds.ticket_product import OfProduct
from regulars.conditions.kinds.ticket_store import OfStore
from regulars.conditions.kinds.ticket_value import TicketValue
from regulars.conditions.labels import GROUPS, Labels

# What the definitions of other rooms are written in.
__all__ = [
    "All", "Any", "Bought", "Comparison", "Condition", "Consent", "ConsentState", "Country", "Created",
    "DateComparison", "FirstPurchase", "Group", "InSegment", "LastPurchase", "Leaf", "Named", "Nothing", "OfAmount",
    "OfAttribute", "OfCurrency", "OfProduct", "OfProperty", "OfStore", "Path", "ReceivedCampaign", "Returned",
    "SalesCondition", "Spend", "Texts", "TicketCondition", "TicketValue", "ValueComparison", "When", "Window",
]  # fmt: skip
DEPTH_MAX: Final = 5
CONDITIONS_MAX: Final = 50

SalesCondition = Bought | Returned | Spend | TicketValue | FirstPurchase | LastPurchase
TicketCondition = OfStore | OfAmount | OfCurrency | OfProduct
_OtherCondition = Texts | ReceivedCampaign | Created | Named | Country | InSegment
Leaf = OfAttribute | Consent | SalesCondition | _OtherCondition | TicketCondition
# The forms of all kinds, in the order in which the builder offers them.
FORMS: Final[tuple[Form, ...]] = (
    OfAttribute.FORM,
    Consent.FORM,
    Bought.FORM,
    Bought.DAYS_FORM,
    Returned.FORM,
    Spend.FORM,
    Bought.ARTICLES_FORM,
    TicketValue.FORM,
    FirstPurchase.FORM,
    LastPurchase.FORM,
    Texts.FORM,
    ReceivedCampaign.FORM,
    Created.FORM,
    Named.FORM,
    Country.FORM,
    InSegment.FORM,
    OfAmount.FORM,
    OfCurrency.FORM,
    OfStore.FORM,
    OfProduct.FORM,
)


class All(Kind, frozen=True, kw_only=True, tag="all"):
    """All inner conditions hold."""

    of: tuple["Condition", ...] = ()

    def sentence(self, labels: Labels) -> str:
        return GROUPS["all"]

    def line(self, labels: Labels) -> str:
        return _join(labels, self.of, " and ")


class Any(Kind, frozen=True, kw_only=True, tag="any"):
    """At least one inner condition holds."""

    of: tuple["Condition", ...] = ()

    def sentence(self, labels: Labels) -> str:
        return GROUPS["any"]

    def line(self, labels: Labels) -> str:
        return _join(labels, self.of, " or ")


class Nothing(Kind, frozen=True, kw_only=True, tag="none"):
    """No inner condition holds."""

    of: tuple["Condition", ...] = ()

    def sentence(self, labels: Labels) -> str:
        return GROUPS["none"]

    def line(self, labels: Labels) -> str:
        return f"none of: {_join(labels, self.of, ' or ')}"


def _join(labels: Labels, conditions: "tuple[Condition, ...]", word: str) -> str:
    lines = [(condition, condition.line(labels)) for condition in conditions]
    return word.join(f"({line})" if isinstance(it, All | Any) else line for it, line in lines) or "nothing"


Group = All | Any | Nothing
Condition = Group | Leaf
# The indexes of a condition in its groups, from the root.
Path = tuple[int, ...]


def walk(condition: Condition, path: Path = ()) -> Iterator[tuple[Path, Condition]]:
    """The condition and all conditions inside it, each with its path: () is the root, (1, 0) the first child of its
    second child."""
    yield path, condition
    if isinstance(condition, Group):
        for number, inner in enumerate(condition.of):
            yield from walk(inner, (*path, number))


def depth_of(condition: Condition) -> int:
    """The depth of nested groups, computed without recursion: a malicious document may be very deep."""
    depth, level = 0, [condition]
    while level := [inner for inner in level if isinstance(inner, Group)]:
        depth += 1
        level = [inner for group in level for inner in group.of]
    return depth


def kind_of(condition: Condition) -> str:
    """The `type` in the JSON, such as `bought`."""
    return str(condition.__struct_config__.tag)


def list_references(condition: Condition) -> References:
    """What a condition and all conditions inside it refer to; an attribute or store may occur several times."""
    lists = zip(*(part.references() for _, part in walk(condition)), strict=True)
    return References(*(tuple(it for references in list_ for it in references) for list_ in lists))


def attributes_of(condition: Condition) -> set[str]:
    return set(list_references(condition).attributes)


def properties_of(condition: Condition) -> set[str]:
    return set(list_references(condition).properties)


def stores_of(condition: Condition) -> set[str]:
    return set(list_references(condition).stores)


def segments_of(condition: Condition) -> set[str]:
    return set(list_references(condition).segments)


def campaigns_of(condition: Condition) -> set[str]:
    return set(list_references(condition).campaigns)


def order_referenced_segments(match: Condition, segments: Mapping[str, Condition | None]) -> list[str]:
    """List the segments that a condition refers to, directly or through other segments. Each segment comes after the
    segments to which its own condition refers.

    `segments` has the condition of each segment; references of a segment with None are not followed. The search is
    iterative, because a chain of segments may be longer than the recursion limit. Saved segments never form a cycle; in
    a cycle one segment would come too early.
    """
    order: dict[str, None] = {}
    visited: set[str] = set()
    stack = sorted(segments_of(match))
    while stack:
        segment_id = stack[-1]
        inner = segments.get(segment_id)
        unvisited = set() if inner is None or segment_id in visited else segments_of(inner) - visited
        visited.add(segment_id)
        if unvisited:
            stack += sorted(unvisited)
        else:
            order.setdefault(stack.pop())
    return [segment_id for segment_id in order if segment_id in segments]
