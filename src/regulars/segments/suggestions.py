"""Suggested segments, which the builder offers to start from."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from regulars.catalog.entries import find_types
from regulars.catalog.model import AttributeType, Catalog
from regulars.conditions import tree
from regulars.kit.db import Tx
from regulars.segments.definition import Definition
from regulars.stores.find import list_stores

# The names that a birthday attribute may have.
BIRTHDAY_KEYS: Final = ("birthday", "birth_date", "birthdate", "date_of_birth", "dob")


@dataclass(frozen=True, slots=True)
class SuggestedSegment:
    """`key` identifies the suggestion in the URL; `text` describes it."""

    key: str
    title: str
    text: str
    definition: Definition


async def find_suggestions(tx: Tx, organization_id: UUID) -> tuple[SuggestedSegment, ...]:
    """Suggest segments, with the organization's first store and its birthday attribute, if it has them."""
    types = await find_types(tx, organization_id, Catalog.ATTRIBUTES, BIRTHDAY_KEYS)
    dates = [key for key in BIRTHDAY_KEYS if key in types and types[key][0] is AttributeType.DATE]
    stores = await list_stores(tx, organization_id, after=None, limit=1)
    birthday = dates[0] if dates else BIRTHDAY_KEYS[0]
    return suggest_segments(birthday=birthday, store=stores[0].external_id if stores else "")


def suggest_segments(
    *, birthday: str = BIRTHDAY_KEYS[0], store: str = "", currency: str = "EUR"
) -> tuple[SuggestedSegment, ...]:
    """`birthday` is the key of the organization's birthday attribute, `store` the external id of one of its stores."""
    stores = (store,) if store else ()
    return (
        _suggest("lapsed", "Lapsed 60 to 365 days", "Bought within a year, but not in the last 60 days.",
            tree.LastPurchase(when=tree.When(comparison="in_last_days", days=365)),
            tree.LastPurchase(when=tree.When(comparison="not_in_last_days", days=60, without_value=False)),
        ),
        _suggest("best", "Best customers of a store", "Net spend of 500 or more in one store in a year.",
            tree.Spend(currency=currency, at_least_cents=50_000, window=tree.Window(last_days=365), stores=stores),  # type: ignore[arg-type]  # one of the four currencies
        ),
        _suggest("unasked", "New customers never asked for consent", "Added in the last 30 days, and not asked yet.",
            tree.Created(when=tree.When(comparison="in_last_days", days=30)),
            tree.Consent(state="never_asked"),
        ),
        _suggest("returned", "Returned in the last 30 days", "Returned at least one article.",
            tree.Returned(at_least=1, window=tree.Window(last_days=30)),
        ),
        _suggest("birthday", "Birthday in the next 7 days", "Uses the birthday among the customer attributes.",
            tree.OfAttribute(key=birthday, comparison="anniversary_in_next_days", days=7),
        ),
    )  # fmt: skip


def new_definition() -> Definition:
    """The definition with which a new segment begins: customers who bought in the last 30 days."""
    return Definition(
        name="New segment", match=tree.All(of=(tree.Bought(at_least=1, window=tree.Window(last_days=30)),))
    )


def _suggest(key: str, title: str, text: str, *conditions: tree.Condition) -> SuggestedSegment:
    return SuggestedSegment(key, title, text, Definition(name=title, match=tree.All(of=conditions)))
