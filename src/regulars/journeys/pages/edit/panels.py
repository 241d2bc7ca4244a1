"""Conditions as forms: the tree of a filter or a branch, and the form of one, which follows the declared type."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from regulars.catalog.find import find_entry, list_entries
from regulars.catalog.model import AttributeType, Catalog, CatalogEntry
from regulars.conditions.comparisons import OFFERED
from regulars.conditions.labels import COMPARISONS, spell_cents
from regulars.conditions.tree import (
    Bought,
    Compared,
    Condition,
    Consent,
    Group,
    InSegment,
    OfAmount,
    OfAttribute,
    OfCurrency,
    OfProduct,
    OfStore,
    Window,
    kind_of,
)
from regulars.journeys.definition import Definition
from regulars.journeys.names import name_segments
from regulars.journeys.words import GROUP_WORDS, tell_condition
from regulars.kit.db import Tx
from regulars.kit.ids import SEGMENT
from regulars.segments.kept.manage import list_segments
from regulars.stores.find import list_stores
from regulars.web.form import FormState

KEYS_OFFERED_MAX: Final = 500
STORES_OFFERED_MAX: Final = 500
CURRENCIES: Final[tuple[Literal["EUR", "GBP", "USD", "CHF"], ...]] = ("EUR", "GBP", "USD", "CHF")
# Kind, words, whether it asks about the ticket.
KINDS: Final = (
    ("subscribed", "May be texted", False),
    ("purchases", "Earlier purchases", False),
    ("attribute", "Attribute of the customer", False),
    ("segment", "In a segment", False),
    ("amount", "Amount of the ticket", True),
    ("currency", "Currency of the ticket", True),
    ("store", "Store of the ticket", True),
    ("product", "Product on the ticket", True),
    ("group", "A group of conditions", False),
)


class Branchlet(NamedTuple):
    """One line of the tree; `group` is all, any or none, and empty for a condition."""

    way: str
    words: str
    group: str
    inside: "list[Branchlet]"


def tree_of(root: Condition | None, segments: Mapping[str, str]) -> list[Branchlet]:
    """`segments` are the names of those that are asked for."""
    return [] if root is None else [_line(root, "", segments)]


def kinds_for(definition: Definition) -> list[tuple[str, str]]:
    """A journey that begins with a consent has no ticket to ask about."""
    return [(kind, words) for kind, words, of_ticket in KINDS if not of_ticket or definition.trigger != "opt_in"]


def _line(part: Condition, way: str, segments: Mapping[str, str]) -> Branchlet:
    if not isinstance(part, Group):
        words = name_segments(tell_condition(part), segments)
        return Branchlet(way, words[:1].upper() + words[1:], "", [])
    kind = kind_of(part)
    prefix = f"{way}." if way else ""
    inside = [_line(one, f"{prefix}{place}", segments) for place, one in enumerate(part.of)]
    return Branchlet(way, GROUP_WORDS[kind], kind, inside)


class Asked(NamedTuple):
    """What the form of one condition offers."""

    kind: str
    keys: Sequence[tuple[str, str]] = ()
    entry: CatalogEntry | None = None
    comparisons: Sequence[tuple[str, str]] = ()
    stores: Sequence[tuple[str, str]] = ()
    segments: Sequence[tuple[str, str]] = ()


async def ask(tx: Tx, organization_id: UUID, form: FormState) -> Asked:
    """By the kind, and for attributes and properties by the key, whose type decides about the comparisons."""
    kind = form.value("type")
    if kind in {"attribute", "product"}:
        catalog = Catalog.ATTRIBUTES if kind == "attribute" else Catalog.PRODUCTS
        known = await list_entries(tx, organization_id, catalog, limit=KEYS_OFFERED_MAX)
        entry = await find_entry(tx, organization_id, catalog, form.value("key")) if form.value("key") else None
        declared = AttributeType.TEXT if entry is None else entry.type
        offered = [(one, COMPARISONS[one]) for one in OFFERED[declared]]
        keys = [(one.key, f"{one.key} ({one.type.value})") for one in known]
        return Asked(kind, keys=keys, entry=entry, comparisons=offered)
    if kind == "store":
        stores = await list_stores(tx, organization_id, after=None, limit=STORES_OFFERED_MAX)
        return Asked(kind, stores=[(one.external_id, one.name or one.external_id) for one in stores])
    if kind == "segment":
        segments = await list_segments(tx, organization_id)
        return Asked(kind, segments=[(SEGMENT.encode(one.id), one.name) for one in segments])
    return Asked(kind)


def fill_condition(part: Condition) -> FormState:
    values: dict[str, str] = {"type": kind_of(part)}
    match part:
        case Consent(is_=wanted) if part == Consent(state="may_be_texted", is_=wanted):
            values |= {"type": "subscribed", "is": "yes" if wanted else "no"}
        case Bought(window=Window(last_days=int() as days), none=none, at_least=least) if part == Bought(
            window=Window(last_days=days), none=none, at_least=least
        ):
            values |= {"type": "purchases", "purchases": "none" if none else "at_least"}
            values |= {"in_days": str(days), "at_least": str(least or 1)}
        case OfAmount(at_least_cents=least, at_most_cents=most):
            values |= {"least": "" if least is None else spell_cents(least)}
            values |= {"most": "" if most is None else spell_cents(most)}
        case OfCurrency(any_of=currencies):
            values |= {f"currency_{one}": "on" for one in currencies}
        case OfStore(any_of=stores):
            values["stores"] = "\n".join(stores)
        case OfAttribute():
            values |= _compared(part)
        case InSegment(id=segment_id, is_=wanted):
            values |= {"segment": segment_id, "is": "yes" if wanted else "no"}
        case OfProduct(property=asked):
            values |= {"products": "\n".join(part.any_of), **({} if asked is None else _compared(asked))}
        case _ if isinstance(part, Group):
            values |= {"type": "group", "group": values["type"]}
        case _:
            pass
    return FormState(values)


def new_condition(kind: str, query: Mapping[str, str]) -> FormState:
    given: dict[str, Any] = {"type": kind, "key": query.get("key", "")}
    given |= {"is": "yes", "purchases": "none", "in_days": "365", "at_least": "1", "group": "any"}
    return FormState(given)


def needs_no_value(comparison: str) -> bool:
    return comparison in {"is_set", "is_not_set"}


def _compared(asked: Compared) -> dict[str, str]:
    first, second = (*asked.values, "", "")[:2]
    value = str(asked.days) if asked.days is not None else asked.value
    return {
        "key": asked.key,
        "comparison": asked.comparison,
        "value": value if value is not None else first,
        "until": second,
        "values": "\n".join(asked.values),
        "without": "yes" if asked.without_value else "no",
    }
