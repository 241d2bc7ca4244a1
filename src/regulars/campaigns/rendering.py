"""Loads the customer data that fills the variables of a campaign's texts, to queue, estimate or preview the texts."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from regulars.campaigns.definition import Definition
from regulars.kit.db import Tx
from regulars.profiles.model import Profile
from regulars.profiles.search import find_profiles_by_ids
from regulars.sales.home_stores import find_home_stores
from regulars.texts.template import customer_variables, fields_of

_STORE_VARIABLES: Final = frozenset({"store.name", "store.city"})


class RecipientValues(NamedTuple):
    profile: Profile
    values: dict[str, str | None]


async def load_values(
    tx: Tx, organization_id: UUID, definition: Definition, profile_ids: Sequence[UUID], *, brand: str
) -> dict[UUID, RecipientValues]:
    """The values by profile id; an erased profile is absent."""
    profiles = await find_profiles_by_ids(tx, organization_id, profile_ids)
    uses_store = any(fields_of(variant.text) & _STORE_VARIABLES for variant in definition.variants)
    stores = await find_home_stores(tx, organization_id, profile_ids) if uses_store else {}
    values_by_profile: dict[UUID, RecipientValues] = {}
    for profile in profiles:
        store = stores.get(profile.id)
        store_values = {} if store is None else {"store.name": store.name, "store.city": store.city}
        values_by_profile[profile.id] = RecipientValues(
            profile, {**customer_variables(profile, brand=brand), **store_values}
        )
    return values_by_profile
